"""Many ranks as one job: each rank is reduced to a small partial result, and the partial results are combined."""
