"""The GPUs, through NVIDIA's driver library: `source` reads them all on threads, `shared` for several targets at once."""
