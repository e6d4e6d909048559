"""Text as vectors, by embedders of any maker. Knows no tenant and no table.

`names` (checked at start), `build` (an embedder by its name), `embedder` (what each of them promises).
Behind them: `local` reaches the embedder of this machine, a process of its own (`serve`, which keeps the
model in a child, `nano`, that it can lose); `openai_compatible`; `bedrock`. Importing this package imports
none of them. What goes wrong is a `integrations.clients.errors.ProviderError`.
"""
