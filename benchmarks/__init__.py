"""Speed and accuracy against peers, one command each; tables and plots go to benchmarks/results/."""
