"""What runs inside a sandbox: a supervisor, a zygote that forks warm interpreters, and the cells that run code."""
