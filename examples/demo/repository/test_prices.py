import unittest

from shop.orders import Line, Order
from shop.prices import total


class Prices(unittest.TestCase):
    def test_a_line_costs_its_price_times_its_count(self):
        self.assertEqual(total(Order(Line("tea", 250, 3))), 750)

    def test_ten_pieces_get_the_discount(self):
        self.assertEqual(total(Order(Line("tea", 100, 10))), 950)

    def test_nine_pieces_get_none(self):
        self.assertEqual(total(Order(Line("tea", 100, 9))), 900)


if __name__ == "__main__":
    unittest.main()
