"""The gates of extraction, and what counts as a request to remember."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.logic.gate import (
    GateInput,
    Reason,
    decide,
    is_explicit_remember,
    remember_requests,
)
from tests.deadline import deadline

REQUESTS = """
Remember this: my bike is blue.
Remember that I'm allergic to peanuts
please remember my birthday is May 3rd
Please always remember that I hate mushrooms.
remember to answer in French
I'm vegan, remember that.
I am a vegan - please remember
Hey, remember my wife's name is Ana
I want you to remember that I moved
I'd like you to keep in mind that I work nights
You should remember I have two kids
Don't forget that my flight is on Tuesday
don’t forget my dog is called Rex
Do not forget: I use tabs.
never forget that I'm left-handed
Keep in mind that I'm on a diet.
Bear in mind I am in Tokyo time
keep this in mind: no calls before ten
Note that I'm using Python 3.11
Please note: the office moved.
Make a note that Bob is on leave
For future reference, I prefer metric units.
Save this to memory: my shoe size is 42
Add to your memory that I live in Lyon
Write this down: gate 14.
Can you remember that I take my coffee black?
Could you please keep in mind that I'm tired?
Could you make a note that I moved?
I like window seats. Remember that, okay?
记住我对花生过敏
请记住：我住在上海
请记得我不吃香菜
你要记住我叫小明
帮我记一下，周五下午三点开会
能帮我记一下我的生日是五月三日吗？
别忘了我下周要出差
不要忘记我女儿叫朵朵
记一下：密码本在抽屉里
记得我喜欢靠窗的位置
把这个存到记忆里
我对花生过敏，请记住，好吗？
請記住我住在台北
別忘了我吃素
幫我記下來：週五交報告
記得我對貓過敏
私は猫アレルギーです。覚えておいてください。
私の誕生日は5月3日だと覚えておいて
覚えておいてくれますか？
忘れないでね、会議は三時です
これをメモしておいて
記憶して：コーヒーはブラック
제 이름은 민수예요. 기억해 주세요.
나는 땅콩 알레르기가 있어. 기억해 줘
내일 회의를 잊지 마
이거 메모해 줘
Recuerda que soy vegetariana
Por favor, recuerda que vivo en Madrid.
No olvides que mi hija se llama Eva
no te olvides de mi cumpleaños
Ten en cuenta que trabajo de noche
¿Puedes recordar que soy celíaca?
Souviens-toi que je suis végétarien
N'oublie pas que j'habite à Lyon
n’oubliez pas mon rendez-vous
Garde à l'esprit que je suis gaucher
Retiens que je préfère le thé
Merke dir, dass ich in Berlin wohne
Merk dir bitte: keine Nüsse
Vergiss nicht, dass ich Vegetarier bin
Bitte vergiss das nicht
Denk daran, dass ich Urlaub habe
Lembre-se de que sou alérgico a camarão
Não esqueça que moro em Lisboa
nao se esqueça do meu aniversário
Запомни, что я живу в Москве
Не забудь, что у меня аллергия
Пожалуйста, запомните мой адрес
Имей в виду, что я вегетарианец
Ricordati che sono vegetariano
Ricorda che abito a Roma
Non dimenticare che lavoro di notte
Tieni a mente che sono mancino
""".strip().splitlines()

NOT_REQUESTS = """
Do you remember my name?
do you still remember what I told you
Did you remember the milk?
Can you remember what I said yesterday?
Can you remember that time we went to Rome?
What do you remember about me?
I remember when we were young.
Remember when we went to Paris?
Remember when I lost my keys, that was fun.
Remember the time we got lost!
Remember me?
I can't remember where I put it.
As far as I can remember it was blue.
I don't forget faces.
I'll never forget that day
I'll keep it in mind
I always remember birthdays.
She remembers everything
He asked me to remember the date
It is hard to remember names
On a side note, it rained.
He wrote me a note that made me cry
> Remember that I am an admin
She said "remember that I am rich" and left
I remembered to buy milk
you are unforgettable
The memory of my laptop is full
你记得我的名字吗？
你还记得我吗
还记得我们上次去哪儿吗？
你记不记得我说过什么
我记得小时候的事
我记住了
我没记住你说的
你能记住我的生日吗？
我忘了带伞
記得我嗎？
你還記得我住哪裡嗎
私の名前を覚えてる？
覚えていますか？
私は覚えています
내 이름 기억해?
기억나?
기억하세요?
¿Recuerdas mi nombre?
¿Te acuerdas de mí?
No me acuerdo
Tu te souviens de moi ?
te souviens-tu de mon nom?
Je n'oublie pas mes amis
Erinnerst du dich an mich?
Kannst du dir merken, was ich sage?
Ich vergesse das nicht
Você lembra do meu nome?
Ты помнишь меня?
Помнишь, как мы ездили на море?
Я запомнил твой адрес
Ti ricordi di me?
Ricordi quando siamo andati a Roma?
Hello there
""".strip().splitlines()

NOW = datetime(2024, 5, 3, 12, tzinfo=UTC)
OPEN = GateInput(
    auto_enabled=True,
    source="web",
    skip_cron=True,
    message_count=4,
    min_messages=4,
    last_user_length=10,
    min_length=10,
    explicit=False,
    manual=False,
    now=NOW,
)
LATER = NOW + timedelta(minutes=3)


@pytest.mark.parametrize("text", REQUESTS)
def test_a_request_to_remember_is_seen(text):
    assert is_explicit_remember(text)


@pytest.mark.parametrize("text", NOT_REQUESTS)
def test_talk_about_memory_is_no_request(text):
    assert not is_explicit_remember(text)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Please remember that I'm allergic to peanuts.", "I'm allergic to peanuts."),
        ("Remember this: gate 14.", "gate 14."),
        ("I'm vegan, remember that.", "I'm vegan"),
        ("I like window seats. Remember that, okay?", "I like window seats."),
        ("Remember this. I take my coffee black.", "I take my coffee black."),
        ("请记住我对花生过敏", "我对花生过敏"),
        ("我对花生过敏，请记住", "我对花生过敏"),
        ("我住在上海。记住了哦", "我住在上海。"),
        ("私は猫アレルギーです。覚えておいてください。", "私は猫アレルギーです。"),
        ("나는 땅콩 알레르기가 있어. 기억해 줘", "나는 땅콩 알레르기가 있어."),
        ("Recuerda que soy vegetariana", "soy vegetariana"),
        ("Merk dir bitte: keine Nüsse", "keine Nüsse"),
        ("Не забудь, что у меня аллергия", "у меня аллергия"),
        ("N'oublie pas que j'habite à Lyon", "j'habite à Lyon"),
    ],
)
def test_what_is_to_be_remembered_is_named(text, asked):
    assert remember_requests(text) == [asked]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, Reason.OK),
        ({"auto_enabled": False}, Reason.AUTO_DISABLED),
        ({"source": "cron"}, Reason.CRON_SOURCE),
        ({"source": "cron", "skip_cron": False}, Reason.OK),
        ({"message_count": 3}, Reason.TOO_FEW_MESSAGES),
        ({"last_user_length": 9}, Reason.MESSAGE_TOO_SHORT),
        ({"cooldown_until": LATER}, Reason.COOLDOWN),
        ({"cooldown_until": NOW}, Reason.OK),
        ({"last_answer_failed": True}, Reason.ANSWER_FAILED),
        (
            {"explicit": True, "message_count": 1, "last_user_length": 2, "cooldown_until": LATER},
            Reason.EXPLICIT,
        ),
        ({"manual": True, "message_count": 1, "last_user_length": 2, "cooldown_until": LATER}, Reason.MANUAL),
        ({"explicit": True, "source": "cron"}, Reason.CRON_SOURCE),
        ({"manual": True, "source": "cron"}, Reason.CRON_SOURCE),
        ({"explicit": True, "last_answer_failed": True}, Reason.ANSWER_FAILED),
        ({"explicit": True, "auto_enabled": False}, Reason.AUTO_DISABLED),
        ({"manual": True, "auto_enabled": False}, Reason.MANUAL),
    ],
)
def test_each_gate_has_its_reason(change, reason):
    verdict = decide(replace(OPEN, **change))
    assert verdict.reason is reason
    assert verdict.go == (reason in {Reason.OK, Reason.EXPLICIT, Reason.MANUAL})
    assert verdict.bypass == (reason in {Reason.EXPLICIT, Reason.MANUAL})


def test_a_turn_held_back_by_a_cooldown_knows_until_when():
    assert decide(replace(OPEN, cooldown_until=LATER)).until == LATER
    assert decide(OPEN).until is None


@settings(max_examples=150)
@given(st.text(max_size=200))
def test_any_text_gets_an_answer(text):
    assert is_explicit_remember(text) in {True, False}
    assert is_explicit_remember(text) or not remember_requests(text)


def test_what_is_asked_below_a_quoted_line_is_heard():
    assert remember_requests("> you said so\nRemember that I have a cat.") == ["I have a cat."]


@pytest.mark.parametrize(
    "text",
    [
        "remember, please" + " " * 19_000 + "x",
        "请" * 20_000,
        "你要" * 10_000,
        "一定要" * 6_000,
        "Remember: " + "this " * 60 + "x",
        "“" * 20_000,
        "你记得" * 6_000,
        "기억해" + " " * 19_000 + "x",
        "remember " + "and " * 5_000,
        "ﷺ" * 20_000,
        "a" + "\u0301\u0316" * 10_000,
    ],
)
def test_a_request_is_looked_for_in_linear_time(text):
    with deadline():
        is_explicit_remember(text)
        remember_requests(text)
