"""How text is compared: NFKC, case-folded, without Latin accents and invisible characters, traditional Chinese
as simplified. What stands here is shared by everything that matches words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from recall.logic.combining import nfkc

# Thai, Lao, Burmese, Khmer; Han with its marks, kana, bopomofo, Hangul: a run of these is not a word.
WINDOWED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""The inside of a regular expression's character class."""

TRADITIONAL = (
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

FOLD_TABLE = str.maketrans(TRADITIONAL[::2] + "’", TRADITIONAL[1::2] + "'")

# Soft hyphens, zero-width and direction marks, variation selectors, tags; NUL and lone surrogates, which
# neither Postgres nor UTF-8 takes.
_DROPPED = re.compile(
    "[\x00\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\ud800-\udfff\U000e0000-\U000e01ef]"
)


def normalized(text: str) -> str:
    """NFKC without what is not seen, apostrophes as `'`; case, accents and characters are kept."""
    if text.isascii():
        return text.replace("\x00", "")
    return nfkc(_DROPPED.sub("", text)).replace("’", "'").replace("‘", "'")


def folded(text: str) -> str:
    """The text as it is compared, but with its accents, which stemmers need (`without_accents`)."""
    plain = normalized(text)
    if plain.isascii():
        return plain.lower()
    return nfkc(plain.casefold()).translate(FOLD_TABLE)


@lru_cache(maxsize=16384)
def without_accents(word: str) -> str:
    """A folded word without the marks of Latin, Greek, Cyrillic, Hebrew and Arabic letters; the marks of other
    scripts are letters and stay.
    """
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFKD", word)
    if apart[:1] >= "\u0700":
        return word
    bare = "".join(char for char in apart if not unicodedata.combining(char))
    return bare or word
