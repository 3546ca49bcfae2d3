DISCOUNT_FROM = 10
DISCOUNT_PERCENT = 5


def total(order):
    """The price of an order in cents. Orders of ten pieces or more get 5% off, rounded down to the cent."""
    cents = sum(line.cents for line in order.lines)
    if order.pieces() > DISCOUNT_FROM:
        cents -= cents * DISCOUNT_PERCENT // 100
    return cents
