"""Vector stores of other makers. Knows no tenant and no table; no text ever goes there, only ids and vectors.

`names` (checked at start), `build` (a store by its name), `base` (what each of them promises). Behind them:
`careful`, the care that is the same for all, and one module for each maker's wire, `s3vectors` and
`opensearch`. Importing this package imports none of them. What goes wrong is a
`integrations.clients.errors.ProviderError`.
"""
