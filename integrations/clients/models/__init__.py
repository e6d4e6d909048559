"""Models of any maker, behind a handful of functions. Knows no tenant and no table.

`names` (checked at start), `build` (a model by its name), `ask` (text, typed), `chat` (with tools; as a
stream), `loop` (where calls run; `before_call`), `answers` (what goes in and comes out), `prices`.
Importing this package imports none of them: the libraries behind take a second to load. What goes wrong
with a provider is a `integrations.clients.errors.ProviderError`.
"""
