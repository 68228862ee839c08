"""What is measured of the answers to labelled examples, by the definitions that papers use."""
