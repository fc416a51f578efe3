"""ebbflow."""
