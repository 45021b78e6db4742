"""What people see: the terminal summary, the HTML report, figures and tables."""
