"""One file per table family. The core's SQL lives here and nowhere else."""
