"""Side by side with peers and floors, each in one run: `make bench`."""
