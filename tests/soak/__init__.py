"""The long forms of the tests of reliability: `make soak`, or `python tests/soak --help`."""
