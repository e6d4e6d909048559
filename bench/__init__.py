"""How fast the product is, each number beside a baseline of the same run."""
