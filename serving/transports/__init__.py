"""The ways to a server of models: REST and gRPC, which give the same answers."""
