"""Secrets never reach a table: what is taken out, and what is left alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.deadline import deadline
from workspaces.logic.redact import redact

# Put together at run time, so that no scanner takes the test for a leak.
LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF" * 4
HEX = "0123456789abcdef" * 4


def _j(*parts: str) -> str:
    return "".join(parts)


JWT = ".".join((_j("ey", "Jhb", LETTERS[:20]), _j("ey", "J", LETTERS[:30]), LETTERS[:43]))
PEM = "\n".join(
    (
        _j("-----BEGIN RSA ", "PRIVATE KEY-----"),
        LETTERS[:64],
        LETTERS[:64],
        _j("-----END RSA ", "PRIVATE KEY-----"),
    )
)

SECRETS = [
    ("openai", _j("s", "k-", LETTERS[:48])),
    ("openai project", _j("s", "k-proj-", LETTERS[:20], "-", LETTERS[:20], "_x")),
    ("anthropic", _j("s", "k-ant-api03-", LETTERS[:60])),
    ("github", _j("gh", "p_", LETTERS[:36])),
    ("github fine-grained", _j("github", "_pat_", LETTERS[:22], "_", LETTERS[:59])),
    ("gitlab", _j("gl", "pat-", LETTERS[:20])),
    ("slack bot", _j("xo", "xb-", "123456789012-", LETTERS[:24])),
    ("slack user", _j("xo", "xp-", "123456789012-", LETTERS[:24])),
    ("aws id", _j("AK", "IA", "ABCDEFGHIJKLMNOP")),
    ("aws temporary id", _j("AS", "IA", "ABCDEFGHIJ234567")),
    ("google", _j("AI", "za", LETTERS[:35])),
    ("hugging face", _j("h", "f_", LETTERS[:34])),
    ("npm", _j("np", "m_", LETTERS[:36])),
    ("sendgrid", _j("S", "G.", LETTERS[:22], ".", LETTERS[:43])),
    ("stripe", _j("s", "k_live_", LETTERS[:24])),
    ("stripe restricted", _j("r", "k_live_", LETTERS[:24])),
    ("ours", _j("m", "m_", (LETTERS[:20] + "-_" + LETTERS)[:43])),
    ("jwt", JWT),
    ("pem", PEM),
    ("pem cut short", PEM[:120]),
    ("dotted", _j("s", "k.live.", LETTERS[:24])),
    ("dotted, three parts", ".".join((LETTERS[:24], LETTERS[:6], LETTERS[:30]))),
    ("telegram", _j("123456789", ":", (LETTERS * 2)[:35])),
]

IN_CONTEXT = [
    ("Authorization: Bearer {}", LETTERS[:24]),
    ("authorization: basic {}", "QWxhZGRpbjpvcGVuU2VzYW1l"),
    ("curl -H 'Authorization: Bearer {}'", JWT),
    ("postgres://app:{}@db.example.com:5432/main", "s3cr3tpw"),
    ("redis://:{}@cache:6379/0", "letmein"),
    ("password: {}", "correct-horse"),
    ("password={}", "swordfish"),
    ("my password is {}", "hunter2"),
    ("My password is {}.", "swordfish"),
    ('"password": "{}"', "pa55,word"),
    ("spring.datasource.password={}", "tiger99"),
    ("spring.cloud.api.key = {}", LETTERS[:32]),
    ("OPENAI_API_KEY={}", LETTERS[:40]),
    ("api_key={}", HEX[:40]),
    ("token: {}", HEX[:32]),
    ("aws_secret_access_key = {}", _j(LETTERS[:30], "/+", LETTERS[:8])),
    ("client_secret: '{}'", LETTERS[:30]),
    ("我的密码是{}，别告诉别人", "abc12345"),
    ("密码：{}", "Qwerty!9"),
    ("密鑰={}", LETTERS[:24]),
    ("contraseña: {}", "gato1234"),
    ("the PIN is {}", "4821"),
    ("card {} please", "4111 1111 1111 1111"),
    ("card {} please", "4111-1111-1111-1111"),
    ("card {} please", "4111111111111111"),
    ("卡号是{}。", "4111111111111111"),
    ("card {} please", "４１１１　１１１１　１１１１　１１１１"),
    ("amex {} ok", "3782 822463 10005"),
    ("row 17 2023 {}", "5555 5555 5555 4444"),
]

ORDINARY = [
    "I forgot my password again, can you help me reset the password?",
    "The password is wrong. My password is too short.",
    "password: required",
    "密码是什么？密码错误。",
    "The token was a gift; she gave him a token of thanks.",
    "The secret: I love her. His secret is safe with me.",
    "token: three pieces of silver",
    "Call me at +49 170 1234 5678 or 415-555-2671, or +86 138 0013 8000.",
    "On 2023-05-08 at 13:56, and on 20230508135600.",
    "Order 1234-5678-9012-3456 shipped; invoice 4111 1111 1111 1112.",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 fixes it",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "sk-learn-is-a-machine-learning-library",
    "Bearer of good news, basic understandings of bread.",
    "https://example.com:8080/path?page=2 and git@github.com:acme/repo.git",
    "see user@example.com or http://localhost:3000/a@b",
    "pi is 3.14159265358979323846",
    "The pin is on the map. I pinned 3 items.",
    "今天是2023年5月8日，订单号是20230508001234。",
    "token_count = 128000",
]


@pytest.mark.parametrize(("name", "secret"), SECRETS, ids=[name for name, _ in SECRETS])
@pytest.mark.parametrize("frame", ["{}", "use {} for the demo", "钥匙：{}，谢谢", "a={}\nb", '{{"k": "{}"}}'])
def test_a_known_kind_of_key_is_taken_out_wherever_it_stands(name, secret, frame):
    result = redact(frame.format(secret))
    assert secret not in result.text
    assert secret[8:28] not in result.text
    assert result.count >= 1
    assert f"[redacted:{result.kinds[0]}]" in result.text


@pytest.mark.parametrize(("frame", "secret"), IN_CONTEXT)
def test_a_value_is_taken_out_when_its_context_says_that_it_is_secret(frame, secret):
    result = redact(frame.format(secret))
    assert result.count == 1
    assert result.text == frame.replace("{}", f"[redacted:{result.kinds[0]}]")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text):
    assert redact(text).text == text
    assert redact(text).count == 0


def test_an_aws_pair_goes_as_a_whole():
    secret = _j(LETTERS[:30], "/+", LETTERS[:8])
    result = redact(f"{_j('AK', 'IA', 'ABCDEFGHIJKLMNOP')}:{secret}")
    assert result.text == "[redacted:aws-key]:[redacted:aws-key]"
    assert (result.count, result.kinds) == (2, ("aws-key",))


def test_every_secret_of_a_text_is_counted():
    text = " and ".join(secret for _, secret in SECRETS if not secret.startswith("-----"))
    result = redact(text)
    assert result.count == text.count(" and ") + 1
    assert all(secret not in result.text for _, secret in SECRETS)


@pytest.mark.parametrize(
    ("piece", "size"),
    [(piece, 1_000_000) for piece in "a-."]
    + [
        (piece, 150_000)
        for piece in (
            "1",
            "1 ",
            "4111 ",
            "eyJ",
            "a.",
            "password",
            "key=",
            "-----BEGIN PRIVATE KEY-----",
            "a:",
            "://a:",
        )
    ],
)
def test_long_monotonous_text_takes_linear_time(piece, size):
    # A quadratic pattern would take hours for 1 MB; that the test ends is what it shows.
    result = redact(piece * (size // len(piece)))
    assert result.count <= size
    assert len(result.text) > 0


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=20),
            st.sampled_from([secret for _, secret in SECRETS] + [f.format(s) for f, s in IN_CONTEXT]),
            st.sampled_from(
                ["password", ": ", "=", " is ", "token", "[redacted:", "]", "Bearer ", "@", "://", "密码是"]
            ),
        ),
        max_size=8,
    )
)
def test_a_second_pass_changes_nothing(parts):
    once = redact("".join(parts))
    assert redact(once.text) == type(once)(once.text, 0, ())


@pytest.mark.parametrize(
    "text",
    [
        "4111-" * 52_000,
        "4111 1111 1111 1111 " * 13_000,
        "1-" * 130_000,
        "4" * 260_000,
        _j("ey", "J中-z1z中") * 32_000,
        _j("ey", "J") + "a" * 260_000,
        _j("S", "G.") * 87_000,
        "password" + " " * 250_000 + "x",
        "token=" * 43_000,
        "http://a:" * 29_000,
    ],
)
def test_secrets_are_found_in_linear_time(text):
    with deadline():
        redact(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # Whole groups alone, the first of them with four digits at least, and one after another.
        ("1234 4111 1111 1111 1111 1234", "1234 [redacted:card] 1234"),
        ("4111 1111 1111 1111 5500-0000-0000-0004", "[redacted:card] [redacted:card]"),
        ("3782 822463 10005", "[redacted:card]"),
        ("411 1111 1111 1111 11", "411 1111 1111 1111 11"),
        ("4111 1111 1111 1112", "4111 1111 1111 1112"),
        ("４１１１ １１１１ １１１１ １１１１", "[redacted:card]"),
        ("1 4222222222222 2", "1 [redacted:card] 2"),
    ],
)
def test_a_card_is_found_among_groups_of_digits(text, left):
    assert redact(text).text == left
