"""What lies beside a profile and adds to it: manifests, logs and summaries."""
