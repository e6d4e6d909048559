"""Keyword search over memory files: Latin by words, scripts without spaces by sliding windows of two.

Everything is compared folded: NFKC, case-folded, without Latin accents and invisible characters, traditional
Chinese as simplified. Matches are found in the folded text and shown on the original.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from workspaces.errors import BadInput
from workspaces.logic.marks import MOST_MARKS, nfkc
from workspaces.logic.names import BORN_ORDER, note_date

MAX_QUERY_CHARS = 512
SNIPPET_CHARS = 80

# BM25's usual constants; lines and sections differ little in length for a reason, hence the small B.
_K1, _B = 1.2, 0.4
_STEM_WEIGHT = 0.85  # 'hobby' for 'hobbies' counts less than the word itself
_PHRASE_BONUS = 1.3  # the whole query, as it was written
_BORN_WEIGHT, _OTHER_WEIGHT, _DAILY_WEIGHT = 1.0, 0.9, 0.75
_MAX_TERMS = 96
_RECALL_QUERY_CHARS = 1000  # from each end of a long message
_MAX_SPANS = 200

# Thai, Lao, Burmese, Khmer; Han with its marks, kana, bopomofo, Hangul: a run of these is not a word.
_WINDOWED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_is_windowed = re.compile(f"[{_WINDOWED}]").match
_MARKS = "".join(
    chr(code)
    for code in range(0x300, 0x3000)
    if unicodedata.category(chr(code)).startswith("M") and not _is_windowed(chr(code))
)
_LETTER = rf"(?:[^\W_{_WINDOWED}]|[{_MARKS}])"
_PIECE = re.compile(f"{_LETTER}+")
_WORD = re.compile(rf"{_LETTER}+(?:[._@'/+-]{{1,2}}{_LETTER}+)*(?:\+\+|#)?")
_TOKEN = re.compile(f"(?P<run>[{_WINDOWED}]+)|(?P<word>{_WORD.pattern})")

_STOP_WORDS = (
    "a about am an and any are as at be been but by can could did do does for from had has have he her "
    "him his how i if in is it its me my of on or our she should so some than that the their them then "
    "there these they this those to us was we were what when where which who whom whose why will with "
    "would you your"
)
_STOP = frozenset(_STOP_WORDS.split())

_TRADITIONAL = (
    "愛爱礙碍骯肮襖袄罷罢擺摆敗败頒颁辦办幫帮綁绑鎊镑謗谤寶宝報报飽饱鮑鲍輩辈貝贝備备憊惫繃绷筆笔畢毕幣币"
    "閉闭邊边編编貶贬變变辯辩標标鱉鳖彆别別别賓宾餅饼撥拨缽钵駁驳補补財财參参蠶蚕殘残慚惭慘惨燦灿蒼苍艙舱"
    "倉仓滄沧廁厕側侧冊册測测層层詫诧攙搀摻掺蟬蝉饞馋讒谗纏缠產产闡阐顫颤場场嘗尝長长償偿腸肠廠厂暢畅鈔钞"
    "車车徹彻塵尘陳陈襯衬撐撑稱称懲惩誠诚騁骋癡痴遲迟馳驰恥耻齒齿熾炽衝冲蟲虫寵宠疇畴躊踌籌筹綢绸醜丑櫥橱"
    "廚厨鋤锄雛雏礎础儲储觸触處处傳传瘡疮闖闯創创錘锤純纯綽绰辭辞詞词賜赐聰聪蔥葱從从叢丛湊凑竄窜錯错達达"
    "帶带貸贷擔担單单鄲郸膽胆憚惮誕诞彈弹當当擋挡黨党蕩荡檔档搗捣島岛禱祷導导盜盗燈灯鄧邓敵敌滌涤遞递締缔"
    "點点墊垫電电澱淀釣钓調调諜谍疊叠釘钉頂顶錠锭訂订東东動动棟栋凍冻鬥斗犢犊獨独讀读賭赌鍍镀鍛锻斷断緞缎"
    "兌兑隊队對对噸吨頓顿鈍钝奪夺墮堕鵝鹅額额訛讹惡恶餓饿兒儿爾尔餌饵貳贰發发罰罚閥阀琺珐礬矾煩烦範范販贩"
    "飯饭訪访紡纺飛飞誹诽廢废費费紛纷墳坟奮奋憤愤糞粪豐丰楓枫鋒锋風风瘋疯馮冯縫缝諷讽鳳凤膚肤輻辐撫抚輔辅"
    "賦赋復复複复負负訃讣婦妇縛缚該该鈣钙蓋盖趕赶稈秆贛赣岡冈剛刚鋼钢綱纲崗岗鎬镐擱搁鴿鸽閣阁個个給给龔龚"
    "宮宫鞏巩貢贡鉤钩溝沟構构購购夠够蠱蛊顧顾關关觀观館馆慣惯貫贯廣广規规歸归龜龟閨闺軌轨詭诡櫃柜貴贵劊刽"
    "輥辊滾滚鍋锅國国過过駭骇韓韩漢汉號号閡阂鶴鹤賀贺橫横轟轰鴻鸿紅红後后壺壶護护滬沪戶户嘩哗華华畫画劃划"
    "話话懷怀壞坏歡欢環环還还緩缓換换喚唤瘓痪煥焕渙涣黃黄謊谎揮挥輝辉毀毁賄贿穢秽會会燴烩匯汇彙汇諱讳誨诲"
    "繪绘葷荤渾浑夥伙獲获穫获貨货禍祸擊击機机積积饑饥譏讥雞鸡績绩緝缉極极輯辑級级擠挤幾几薊蓟劑剂濟济計计"
    "記记際际繼继紀纪夾夹莢荚頰颊賈贾鉀钾價价駕驾殲歼監监堅坚箋笺間间艱艰緘缄繭茧檢检鹼碱揀拣撿捡簡简儉俭"
    "減减薦荐檻槛鑒鉴踐践賤贱見见鍵键艦舰劍剑餞饯漸渐濺溅澗涧將将漿浆蔣蒋槳桨獎奖講讲醬酱膠胶澆浇驕骄嬌娇"
    "攪搅鉸铰矯矫僥侥腳脚餃饺繳缴絞绞轎轿較较階阶節节莖茎驚惊經经頸颈靜静鏡镜徑径痙痉競竞淨净糾纠廄厩舊旧"
    "駒驹舉举據据鋸锯懼惧劇剧鵑鹃絹绢傑杰潔洁結结誡诫屆届緊紧錦锦僅仅謹谨進进晉晋燼烬盡尽勁劲覺觉決决訣诀"
    "絕绝鈞钧軍军駿骏開开凱凯顆颗殼壳課课墾垦懇恳摳抠庫库褲裤誇夸塊块儈侩寬宽礦矿曠旷況况虧亏巋岿窺窥饋馈"
    "潰溃擴扩闊阔蠟蜡臘腊萊莱來来賴赖藍蓝欄栏攔拦籃篮闌阑蘭兰瀾澜讕谰攬揽覽览懶懒纜缆爛烂濫滥撈捞勞劳澇涝"
    "樂乐鐳镭壘垒類类淚泪籬篱離离裡里裏里鯉鲤禮礼麗丽厲厉勵励礫砾歷历曆历瀝沥隸隶倆俩聯联蓮莲連连鐮镰憐怜"
    "漣涟簾帘斂敛臉脸鏈链戀恋煉炼練练糧粮涼凉兩两輛辆諒谅療疗遼辽鐐镣獵猎臨临鄰邻鱗鳞凜凛賃赁齡龄鈴铃靈灵"
    "嶺岭領领餾馏劉刘龍龙聾聋嚨咙籠笼壟垄攏拢隴陇樓楼婁娄摟搂簍篓蘆芦盧卢顱颅廬庐爐炉擄掳鹵卤虜虏魯鲁賂赂"
    "祿禄錄录陸陆驢驴呂吕鋁铝侶侣屢屡縷缕慮虑濾滤綠绿巒峦攣挛孿孪灤滦亂乱掄抡輪轮倫伦侖仑淪沦綸纶論论蘿萝"
    "羅罗邏逻鑼锣籮箩騾骡駱骆絡络媽妈瑪玛碼码螞蚂馬马罵骂嗎吗買买麥麦賣卖邁迈脈脉瞞瞒饅馒蠻蛮滿满貓猫錨锚"
    "鉚铆貿贸麼么門门悶闷們们夢梦謎谜彌弥覓觅綿绵緬缅廟庙滅灭憫悯閩闽鳴鸣銘铭謬谬謀谋畝亩鈉钠納纳難难撓挠"
    "腦脑惱恼鬧闹餒馁內内擬拟膩腻攆撵釀酿鳥鸟聶聂齧啮鎳镍檸柠獰狞寧宁擰拧濘泞鈕钮紐纽膿脓濃浓農农瘧疟諾诺"
    "歐欧鷗鸥毆殴嘔呕漚沤盤盘龐庞賠赔噴喷鵬鹏騙骗飄飘頻频貧贫蘋苹憑凭評评潑泼頗颇撲扑鋪铺樸朴譜谱臍脐齊齐"
    "騎骑豈岂啟启氣气棄弃訖讫牽牵釺钎鉛铅遷迁簽签籤签謙谦錢钱鉗钳潛潜淺浅譴谴塹堑槍枪嗆呛牆墙薔蔷強强搶抢"
    "鍬锹橋桥喬乔僑侨翹翘竅窍竊窃欽钦親亲輕轻氫氢傾倾頃顷請请慶庆瓊琼窮穷趨趋區区軀躯驅驱顴颧權权勸劝卻却"
    "鵲鹊讓让饒饶擾扰繞绕熱热韌韧認认紉纫榮荣絨绒軟软銳锐閏闰潤润灑洒薩萨鰓鳃賽赛傘伞喪丧騷骚掃扫澀涩殺杀"
    "紗纱篩筛曬晒閃闪陝陕贍赡繕缮傷伤賞赏燒烧紹绍賒赊攝摄懾慑設设紳绅審审嬸婶腎肾滲渗聲声繩绳勝胜聖圣師师"
    "獅狮濕湿詩诗時时蝕蚀實实識识駛驶勢势適适釋释飾饰視视試试壽寿獸兽樞枢輸输書书贖赎屬属術术樹树豎竖數数"
    "帥帅雙双誰谁稅税順顺說说碩硕爍烁絲丝飼饲聳耸慫怂頌颂訟讼誦诵擻擞蘇苏訴诉肅肃雖虽隨随綏绥歲岁孫孙損损"
    "筍笋縮缩瑣琐鎖锁獺獭撻挞態态攤摊貪贪癱瘫灘滩壇坛譚谭談谈嘆叹湯汤燙烫濤涛騰腾謄誊銻锑題题體体條条貼贴"
    "鐵铁廳厅聽听銅铜統统頭头圖图塗涂團团頹颓蛻蜕脫脱鴕鸵馱驮橢椭窪洼襪袜彎弯灣湾頑顽萬万網网韋韦違违圍围"
    "為为爲为濰潍維维葦苇偉伟偽伪緯纬謂谓衛卫溫温聞闻紋纹穩稳問问甕瓮渦涡窩窝嗚呜鎢钨烏乌誣诬無无蕪芜吳吴"
    "塢坞霧雾務务誤误錫锡犧牺襲袭習习銑铣戲戏細细蝦虾轄辖峽峡俠侠狹狭嚇吓鮮鲜纖纤鹹咸賢贤銜衔閒闲顯显險险"
    "現现獻献縣县餡馅羨羡憲宪線线廂厢鑲镶鄉乡詳详響响項项蕭萧銷销曉晓嘯啸協协挾挟攜携脅胁諧谐寫写瀉泻謝谢"
    "鋅锌釁衅興兴洶汹鏽锈繡绣虛虚噓嘘須须許许緒绪續续軒轩懸悬選选癬癣絢绚學学勛勋詢询尋寻馴驯訓训訊讯遜逊"
    "壓压鴉鸦鴨鸭啞哑亞亚訝讶閹阉煙烟鹽盐嚴严顏颜閻阎豔艳厭厌硯砚彥彦諺谚驗验鴦鸯楊杨揚扬瘍疡陽阳癢痒養养"
    "樣样瑤瑶搖摇堯尧遙遥窯窑謠谣藥药爺爷頁页業业葉叶醫医銥铱頤颐遺遗儀仪蟻蚁藝艺億亿憶忆義义詣诣議议誼谊"
    "譯译異异繹绎蔭荫陰阴銀银飲饮隱隐櫻樱嬰婴鷹鹰應应纓缨瑩莹螢萤營营熒荧蠅蝇贏赢穎颖喲哟擁拥傭佣癰痈踴踊"
    "詠咏湧涌優优憂忧郵邮鈾铀猶犹遊游誘诱輿舆魚鱼漁渔娛娱與与嶼屿語语籲吁禦御獄狱譽誉預预馭驭鴛鸳淵渊轅辕"
    "園园員员圓圆緣缘遠远願愿約约躍跃鑰钥嶽岳粵粤悅悦閱阅雲云鄖郧勻匀隕陨運运蘊蕴醞酝暈晕韻韵雜杂災灾載载"
    "攢攒暫暂贊赞讚赞贓赃髒脏臟脏鑿凿棗枣竈灶責责擇择則则澤泽賊贼贈赠紮扎軋轧鍘铡閘闸詐诈齋斋債债氈毡盞盏"
    "斬斩輾辗嶄崭棧栈戰战綻绽張张漲涨帳帐賬账脹胀趙赵蟄蛰轍辙鍺锗這这貞贞針针偵侦診诊鎮镇陣阵掙挣睜睁猙狰"
    "爭争幀帧鄭郑證证織织職职執执紙纸摯挚擲掷幟帜質质滯滞鐘钟鍾钟終终種种腫肿眾众謅诌軸轴皺皱晝昼驟骤豬猪"
    "諸诸誅诛燭烛矚瞩囑嘱貯贮鑄铸築筑駐驻專专磚砖轉转賺赚樁桩莊庄裝装妝妆壯壮狀状錐锥贅赘墜坠綴缀諄谆準准"
    "濁浊茲兹資资漬渍蹤踪綜综總总縱纵鄒邹詛诅組组鑽钻臺台檯台颱台髮发麵面隻只錶表鬆松週周註注係系繫系製制"
    "捨舍佔占乾干幹干嚐尝迴回迺乃託托慾欲鬍胡鬚须麪面妳你徵征佈布僱雇峯峰羣群祕秘綫线"
)
"""Traditional characters, each followed by the simplified one that it is folded to."""

# Chinese and Japanese particles, pronouns and question words. A character alone between them is a word that
# windows of two miss: 我的猫 asks for 猫.
_PARTICLES = re.compile(
    "[的了吗呢吧着是在和与或也都就还我你您他她它们这那有不没很个只什么谁哪怎はがをにでともへやのか]+"
)
_is_han = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]").fullmatch

_FOLD_TABLE = str.maketrans(_TRADITIONAL[::2] + "’", _TRADITIONAL[1::2] + "'")
_INVISIBLE = "\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
# Text with any of these is folded character by character: accents, invisible ones, letters in pieces.
_needs_care = re.compile(
    f"[\u00aa-\u06ff\u1e00-\u1fff\u1100-\u11ff\u3099\u309a\ua960-\ua97f\ud7b0-\ud7ff{_INVISIBLE}]"
).search
_is_invisible = re.compile(f"[{_INVISIBLE}]").match
_is_jamo_tail = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff]").match


@dataclass(frozen=True, slots=True)
class Searchable:
    """A file to be searched."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches: its 1-based number, a snippet of at most 80 characters of it (marks not counted)
    with the terms marked `[[term]]`, and its score (higher is better; only to be compared within one search).
    """

    name: str
    line: int
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class _Folded:
    """`text` folded; its character n comes from `starts[n]:ends[n]` of the original. Empty: one to one."""

    text: str
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def original(self, start: int, end: int) -> tuple[int, int]:
        return (self.starts[start], self.ends[end - 1]) if self.starts else (start, end)


@dataclass(slots=True)
class _Matches:
    """Where and how often the terms stand in a text; `spans` are of the folded text, with their term."""

    folded: _Folded
    counts: dict[str, float] = field(default_factory=dict)
    spans: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, term: str, weight: float, start: int, end: int) -> None:
        self.counts[term] = self.counts.get(term, 0.0) + weight
        if len(self.spans) < _MAX_SPANS:
            self.spans.append((start, end, term))


def fold(text: str) -> str:
    """The text as it is compared."""
    return _fold(text).text


def terms(query: str) -> tuple[str, ...]:
    """What a query looks for, folded, each once, in its order.

    Runs of Han, kana, Hangul and other scripts without spaces give every two neighbours; a character alone
    (also alone between particles) gives itself. Other words give themselves, and their pieces where they are
    compound (`foo_bar`, `v1.2`, `e-mail`, `bob@example.com`). English stop words are left out unless nothing
    else is there; a query of signs alone is looked for as it stands.
    """
    folded = fold(query)
    found: list[str] = []
    for token in _TOKEN.finditer(folded):
        if token["run"]:
            run = token["run"]
            found += [run[n : n + 2] for n in range(max(1, len(run) - 1))]
            found += [part for part in _PARTICLES.split(run) if _is_han(part)]
        else:
            found += [form for form, _, _ in _forms(token)]
    wanted = [term for term in found if term not in _STOP] or found or folded.split()
    return tuple(dict.fromkeys(wanted))[:_MAX_TERMS]


def search(files: Iterable[Searchable], query: str, *, limit: int = 20, per_file: int = 5) -> list[Hit]:
    """The lines that match best, at most `per_file` of a file and `limit` in all.

    Terms are OR-ed; a line ranks by how rare its terms are among all lines, and above at a similar match when
    it stands in one of the files an agent is born with, below in a daily note (newer ones first).
    Raises BadInput `bad_query` unless the query has 1 to 512 characters.
    """
    size = len(query) if query.strip() else 0
    if not 1 <= size <= MAX_QUERY_CHARS:
        raise BadInput(
            "bad_query",
            f"The query has {size} characters; give 1 to {MAX_QUERY_CHARS}, not only spaces.",
            limit=MAX_QUERY_CHARS,
        )
    looked_for = _Query(query)
    found: list[tuple[Searchable, int, str, _Matches]] = []
    sizes: list[int] = []
    for file in files:
        for number, line in enumerate(file.text.split("\n"), start=1):
            if line.strip():
                sizes.append(len(line))
                matches = looked_for.matches(line)
                if matches is not None:
                    found.append((file, number, line, matches))
    ranking = _Ranking([matches for *_, matches in found], sizes, looked_for.phrase)
    # The whole line in place of its snippet, which is made of those that are shown alone.
    ranked = [
        (
            Hit(file.name, number, line, round(ranking.score(matches, len(line)) * _weight(file.name), 6)),
            matches,
        )
        for file, number, line, matches in found
    ]
    return [
        replace(hit, snippet=_snippet(hit.snippet, matches, ranking.idf))
        for hit, matches in _best(ranked, limit, per_file)
    ]


def score_passages(passages: Sequence[str], query: str) -> list[float]:
    """How well each passage answers the query, 0.0 when not at all; BM25 over these passages.

    Of a long query (a whole message) the first and the last thousand characters count.
    """
    if len(query) > 2 * _RECALL_QUERY_CHARS:
        query = query[:_RECALL_QUERY_CHARS] + "\n" + query[-_RECALL_QUERY_CHARS:]
    looked_for = _Query(query)
    matched = [looked_for.matches(passage) for passage in passages]
    sizes = [len(passage) for passage in passages]
    ranking = _Ranking([one for one in matched if one is not None], sizes, looked_for.phrase)
    return [
        0.0 if matches is None else ranking.score(matches, size)
        for matches, size in zip(matched, sizes, strict=True)
    ]


class _Query:
    """A query made ready to be matched against many texts."""

    def __init__(self, query: str) -> None:
        wanted = terms(query)
        self.phrase = " ".join(fold(query).split())
        words = [term for term in wanted if _WORD.fullmatch(term)]
        self._plain = [term for term in wanted if term not in words]
        self._by_stem: dict[str, list[str]] = {}
        for word in words:
            self._by_stem.setdefault(_stem(word), []).append(word)
        # A text without any of these holds no term: a stem but for its last i, which may be a y, is always a
        # prefix of the word.
        self._probes = [*self._plain, *(stem.removesuffix("i") or stem for stem in self._by_stem)]

    def matches(self, text: str) -> _Matches | None:
        """Where the terms stand in `text`; None when none does."""
        folded = _fold(text)
        bare = folded.text.replace("-", "") if "-" in folded.text else folded.text
        if not any(probe in folded.text or probe in bare for probe in self._probes):
            return None
        found = _Matches(folded)
        for term in self._plain:
            at = folded.text.find(term)
            while at >= 0:
                found.add(term, 1.0, at, at + len(term))
                at = folded.text.find(term, at + 1)
        if self._by_stem:
            self._match_words(folded.text, found)
        return found if found.counts else None

    def _match_words(self, text: str, found: _Matches) -> None:
        for token in _WORD.finditer(text):
            for form, start, end in _forms(token):
                for word in self._by_stem.get(_stem(form), ()):
                    found.add(word, 1.0 if form == word else _STEM_WEIGHT, start, end)


class _Ranking:
    """BM25 over a set of texts, of which only the matching ones are given; `sizes` are of all."""

    def __init__(self, matched: Sequence[_Matches], sizes: Sequence[int], phrase: str) -> None:
        self._mean = max(1.0, sum(sizes) / len(sizes)) if sizes else 1.0
        self._phrase = phrase
        holding = Counter(term for matches in matched for term in matches.counts)
        self.idf = {
            term: math.log(1 + (len(sizes) - count + 0.5) / (count + 0.5)) for term, count in holding.items()
        }

    def score(self, matches: _Matches, size: int) -> float:
        damping = _K1 * (1 - _B + _B * size / self._mean)
        total = sum(
            self.idf[term] * count * (_K1 + 1) / (count + damping) for term, count in matches.counts.items()
        )
        return total * (_PHRASE_BONUS if self._phrase in matches.folded.text else 1.0)


def _best(hits: Iterable[tuple[Hit, _Matches]], limit: int, per_file: int) -> list[tuple[Hit, _Matches]]:
    taken: Counter[str] = Counter()
    best: list[tuple[Hit, _Matches]] = []
    for hit, matches in sorted(hits, key=lambda one: _rank(one[0])):
        if len(best) >= limit:
            break
        if taken[hit.name] < per_file:
            taken[hit.name] += 1
            best.append((hit, matches))
    return best


def _rank(hit: Hit) -> tuple[float, int, str, int]:
    day = note_date(hit.name)
    return (-hit.score, -day.toordinal() if day else 0, hit.name, hit.line)


def _weight(name: str) -> float:
    if name in BORN_ORDER:
        return _BORN_WEIGHT
    return _DAILY_WEIGHT if note_date(name) else _OTHER_WEIGHT


def _forms(word: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    """A word, its pieces, and without its hyphens, each with its place."""
    text, start, end = word[0], word.start(), word.end()
    text = text.removesuffix("'s")
    yield text, start, start + len(text)
    pieces = list(_PIECE.finditer(text))
    if len(pieces) == 1 and pieces[0][0] == text:
        return
    is_contracted = "'" in text
    for piece in pieces:
        if len(piece[0]) > 1 or not is_contracted:
            yield piece[0], start + piece.start(), start + piece.end()
    if "-" in text and "".join(piece[0] for piece in pieces) == text.replace("-", ""):
        yield text.replace("-", ""), start, end


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """A light English stem: plural, -ed, -ing, final e and y; other words as they are."""
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith("ies"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    word = _without_ending(word)
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def _without_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root == word or word.endswith("eed") or not re.search("[aeiouy]", root):
            continue
        if ending == "ed" and len(root) == 2:  # used, owed
            return root + "e"
        if len(root) >= 3:
            is_doubled = root[-1] == root[-2] and root[-1] not in "aeioulsz"
            return root[:-1] if is_doubled and len(root) > 3 else root
    return word


def _fold(text: str) -> _Folded:
    if text.isascii():
        return _Folded(text.lower())
    if _needs_care(text) is None and nfkc(text) == text:
        folded = text.casefold()
        if len(folded) == len(text):
            return _Folded(folded.translate(_FOLD_TABLE))
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(text):
        piece = _fold_cluster(text[start:end])
        pieces.append(piece)
        starts += [start] * len(piece)
        ends += [end] * len(piece)
    return _Folded("".join(pieces), tuple(starts), tuple(ends))


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """A character and those that combine with it, in pieces of a bounded size."""
    start = 0
    for at, char in enumerate(text):
        if at > start and (not _joins(char) or at - start > MOST_MARKS):
            yield start, at
            start = at
    if text:
        yield start, len(text)


@lru_cache(maxsize=4096)
def _joins(char: str) -> bool:
    return bool(_is_jamo_tail(char)) or unicodedata.combining(unicodedata.normalize("NFKC", char)[0]) != 0


@lru_cache(maxsize=8192)
def _fold_cluster(cluster: str) -> str:
    if _is_invisible(cluster):
        return ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    apart = unicodedata.normalize("NFKD", folded)
    if apart[:1] < "\u0700":  # Latin, Greek, Cyrillic, Hebrew, Arabic; the marks of other scripts are letters
        bare = "".join(char for char in apart if not unicodedata.combining(char))
        folded = bare or folded
    return folded.translate(_FOLD_TABLE)


def _snippet(line: str, matches: _Matches, idf: dict[str, float]) -> str:
    """The stretch of the line that holds most of what was looked for, with the matches marked."""
    places = sorted((*matches.folded.original(start, end), term) for start, end, term in matches.spans)
    start, end = _window(line, places, idf)
    text = "…" if start > 0 else ""
    at = start
    for first, last in _merged(places, start, end):
        text += f"{line[at:first]}[[{line[first:last]}]]"
        at = last
    return (text + line[at:end] + ("…" if end < len(line) else "")).strip()


def _merged(places: Iterable[tuple[int, int, str]], start: int, end: int) -> list[tuple[int, int]]:
    """The places within a window, those that touch put together."""
    merged: list[tuple[int, int]] = []
    for place in places:
        first, last = max(place[0], start), min(place[1], end)
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        elif first < last:
            merged.append((first, last))
    return merged


def _window(line: str, places: Sequence[tuple[int, int, str]], idf: dict[str, float]) -> tuple[int, int]:
    if len(line) <= SNIPPET_CHARS:
        return 0, len(line)
    width = SNIPPET_CHARS - 2  # an ellipsis at each end
    firsts = [first for first, _, _ in places]

    def worth(at: int) -> float:
        inside = places[at : bisect_left(firsts, firsts[at] + width)]
        return sum(idf[term] for term in {term for _, last, term in inside if last <= firsts[at] + width})

    best = max(range(len(places)), key=lambda at: (worth(at), -at))
    last = max((last for _, last, _ in places[best:] if last <= firsts[best] + width), default=firsts[best])
    slack = max(0, width - (last - firsts[best]))
    start = min(max(0, firsts[best] - slack // 2), len(line) - width)
    return start, start + width
