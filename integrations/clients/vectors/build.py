"""Vector stores by name: `s3vectors:<vector bucket>`, `opensearch:<https://host:port>`, and `pgvector`."""

from integrations.clients.vectors.base import VectorStore
from integrations.clients.vectors.careful import CarefulStore
from integrations.clients.vectors.names import check_address, check_index_name, check_store_name


def make_store(
    name: str,
    *,
    index: str,
    timeout_s: float,
    region: str | None = None,
    endpoint_url: str | None = None,
    username: str | None = None,
    password: str | None = None,
    engine: str = "lucene",
) -> VectorStore | None:
    """A store ready to be called, of any thread and after any fork; keep it, since it holds connections.

    None for `pgvector`: the vectors stay in Postgres. `index`: as `index_name` makes it. `timeout_s` bounds
    the connection, and each wait for more of an answer.

    S3 Vectors takes AWS's own variables, files or instance role; `region` and `endpoint_url` stand above them.
    OpenSearch takes `username` and `password`, or, with a `region` and no user, requests are signed with AWS's
    credentials, for a domain that AWS manages; `engine` is `lucene` or `faiss`.

    Raises ValueError for a bad name, ProviderError (`auth`, `bad_request`) when a region or credentials are
    missing.
    """
    asked = check_store_name(name)
    check_index_name(index)
    if asked.kind == "pgvector":
        return None
    if asked.kind == "s3vectors":
        from integrations.clients.vectors.s3vectors import S3Vectors  # noqa: PLC0415 - loads boto3: a second

        endpoint = check_address(endpoint_url) if endpoint_url else None
        return CarefulStore(
            S3Vectors(asked.place, index=index, timeout_s=timeout_s, region=region, endpoint_url=endpoint)
        )
    from integrations.clients.vectors.opensearch import OpenSearchIndex  # noqa: PLC0415 - half a second

    return CarefulStore(
        OpenSearchIndex(
            asked.place,
            index=index,
            timeout_s=timeout_s,
            username=username,
            password=password,
            region=region,
            engine=engine,
        )
    )
