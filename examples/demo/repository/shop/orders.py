from dataclasses import dataclass


@dataclass
class Line:
    name: str
    cents: int
    count: int = 1


class Order:
    def __init__(self, *lines, customer="guest"):
        self.lines = list(lines)
        self.customer = customer

    def pieces(self):
        return sum(line.count for line in self.lines)
