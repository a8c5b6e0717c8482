"""What tests of applications and of other backends use."""
