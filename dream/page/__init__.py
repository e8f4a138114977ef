"""The page on which people play: rounds between people and players, advice, review, and the server that offers them."""
