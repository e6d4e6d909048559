"""Words that say nothing about what a text is about, by language; what only questions say; and which words give
a language away. Written without accents where people leave them out, and with them otherwise.
"""

from __future__ import annotations

_ENGLISH = (
    "a about after again all also am an and another any are as at be because been before being both but by can "
    "could did do does doing done down each either else etc even ever every few for from get gets getting go "
    "goes going got gonna had has have having he hello her here hers herself hey hi him himself his how i if in "
    "into is it its itself just like lot lots me more most much my myself near no nor not now of off oh ok okay "
    "on once one only onto or other our ours out over own per please quite rather really s same shall she should "
    "so some still such t than that the their theirs them themselves then there these they thing things this "
    "those through to too under until up upon us very was wanna we well were what when where whether which while "
    "who whom whose why will with within would wow yeah yep yes yet you your yours yourself "
    "d ll m o re ve don didn doesn isn wasn aren weren wouldn couldn shouldn hasn haven hadn ain let lets "
    "http https www"
)
_GERMAN = (
    "aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den der des dich die "
    "dies diese dieser dieses dir doch du durch ein eine einem einen einer eines er es euch euer für fuer gegen "
    "gibt hab habe haben hast hat hatte hatten ich ihm ihn ihr ihre im in ins ist ja kann kein keine können "
    "mal man mein meine mich mir mit muss nach nicht noch nun nur ob oder schon sehr sein seine sich sie sind so "
    "um und uns unser unter vom von vor war waren was weil wenn wer werden wie wieder wir wird wo wurde wurden "
    "über zu zum zur zwar warum wann welche welcher welches wen wem woher wohin"
)
_FRENCH = (
    "ai ainsi alors as au aussi aux avait avec avez avons c ce cela ces cet cette chez comme d dans de des donc "
    "du elle elles en entre es est et eu eux fait il ils j je l la le les leur leurs lui m ma mais me mes moi mon "
    "même n ne nos notre nous on ont ou où par pas plus pour qu que quel quelle quelles quels qui quoi quand s sa "
    "sans se sera ses si son sont sur t ta te tes toi ton tous tout toute très tu un une vos votre vous y à été "
    "être était pourquoi comment combien"
)
_SPANISH = (
    "a al algo antes aquí así aunque cada como con cual cuando cuándo de del desde donde dónde durante e el él "
    "ella ellas ellos en entre era eran es esa ese eso esta está están estas este esto estos fue fueron ha había "
    "han hasta hay he la las le les lo los más me mi mis mucho muy nada ni no nos nosotros nuestra nuestro o os "
    "otra otro para pero poco por porque que qué quien quién se ser si sí sin sobre son su sus también te tiene "
    "tengo tu tus tú un una uno unos y ya yo cómo cuánto cuántos cuál"
)
_ITALIAN = (
    "a ad ai al alla alle allo anche c che chi ci come con così cosa cui d da dai dal dalla degli dei del dell "
    "della delle dello di dove due e è ed era erano essere fra gli ha hai hanno ho i il in io l la le lei li lo "
    "loro lui ma me mi mia mio molto ne negli nei nel nella nelle no noi non nostro o ogni per perché più poi "
    "quale quali quando quanto quello questa queste questi questo qui se sei si sia sono su sua sue sul sulla "
    "suo tra tu tuo tutti tutto un una uno vi voi"
)
_PORTUGUESE = (
    "a ao aos as até com como da das de dela dele deles do dos e é ela elas ele eles em entre era essa esse esta "
    "está este eu foi foram há isso isto já lhe mais mas me mesmo meu meus minha muito na nas não nem no nos nós "
    "nossa nosso num numa o os ou para pela pelas pelo pelos por porque qual quando quanto que quem se sem ser "
    "seu seus só sua suas são também te tem tenho ter teu tua um uma você vocês onde quê"
)
_RUSSIAN = (
    "а без был была были было быть в вам вас весь во вот все всё вы где да даже для до его ее её если есть еще "
    "ещё же за и из или им их к как какая какие какой когда кто ли мне мой моя мы на над нас наш не него нее нет "
    "ни них но ну о об он она они оно от очень по под почему при с сам свой себя со так также там то тоже только "
    "ты у уже что чтобы эта эти это этот я сколько куда откуда чей"
)

STOP_WORDS: dict[str, frozenset[str]] = {
    "english": frozenset(_ENGLISH.split()),
    "german": frozenset(_GERMAN.split()),
    "french": frozenset(_FRENCH.split()),
    "spanish": frozenset(_SPANISH.split()),
    "italian": frozenset(_ITALIAN.split()),
    "portuguese": frozenset(_PORTUGUESE.split()),
    "russian": frozenset(_RUSSIAN.split()),
}
"""Left out of the index and of queries, by the name of the language's Snowball stemmer."""

_QUESTION_WORDS = (
    "according answer describe describes described explain find give kind kinds know list long many may mention "
    "mentioned mentions might name often remember recall said say says show sort sorts tell tells told type types"
)
QUESTION_WORDS = frozenset(_QUESTION_WORDS.split())
"""How English questions are put, not what they ask for; left out of queries as long as something else is there."""

QUESTION_RUNS = (
    "什么时候|什么样|为什么|是不是|有没有|能不能|可不可以|哪一天|哪一年|哪些|哪个|哪里|哪儿|哪位|哪天|哪年|几月|几号|"
    "多少|多久|怎么样|怎么|怎样|如何|什么|何时|何地|请问|告诉我|谁|吗|呢|"
    "いつ|どこ|だれ|なに|なぜ|どう|です|ます|でした|ました"
)
"""The same in Chinese and Japanese, the longest first: no window of two is laid across them."""

PARTICLES = frozenset(
    "的了吗呢吧着过啊呀是在和与或也都就还我你您他她它们这那有不没很个只把被给从到对为以之其而且但什么谁哪怎几"
    "はがをにでともへやのかねよなたてしすまれる"
)
"""Chinese and Japanese particles, pronouns and auxiliaries. A window of two of them is no term; a character alone
between them is one that windows of two miss: 我的猫 asks for 猫."""
