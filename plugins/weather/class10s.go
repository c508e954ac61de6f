package main

import "strings"

// forecastArea is a class10 area with what JMA's tables say about it. The stations are those of its temperatures, the
// main one first, as "code/class15 name English name"; the class15 area in which a station stands is given where there
// are several stations. The weekly areas are those that it may belong to, which differ by season.
//
// JMA moves stations and then changes their codes, and may redraw areas: what is not here is looked up in JMA's own
// tables.
type forecastArea struct{ code, office, name, en, stations, weekly string }

// station is a weather station (AMeDAS). Its class15 area is "" if it is the only one of its class10 area.
type station struct{ code, class15, name, en string }

// areaOf returns the built-in entry of a class10 code.
func areaOf(class10 string) (forecastArea, bool) {
	for _, area := range forecastAreas {
		if area.code == class10 {
			return area, true
		}
	}
	return forecastArea{}, false
}

func (a forecastArea) stationList() []station {
	var list []station
	for text := range strings.SplitSeq(a.stations, ", ") {
		code, names, _ := strings.Cut(text, " ")
		code, class15, _ := strings.Cut(code, "/")
		name, en, _ := strings.Cut(names, " ")
		list = append(list, station{code, class15, name, en})
	}
	return list
}

var forecastAreas = [...]forecastArea{
	{"011000", "011000", "宗谷地方", "Soya Region", "11016 稚内 Wakkanai", "011000"},
	{"012010", "012000", "上川地方", "Kamikawa Region", "12442 旭川 Asahikawa", "012000"},
	{"012020", "012000", "留萌地方", "Rumoi Region", "13277 留萌 Rumoi", "012000"},
	{"013010", "013000", "網走地方", "Abashiri Region", "17341 網走 Abashiri", "013000"},
	{"013020", "013000", "北見地方", "Kitami Region", "17521 北見 Kitami", "013000"},
	{"013030", "013000", "紋別地方", "Mombetsu Region", "17112 紋別 Mombetsu", "013000"},
	{"014010", "014100", "根室地方", "Nemuro Region", "18273 根室 Nemuro", "014000 014100"},
	{"014020", "014100", "釧路地方", "Kushiro Region", "19432 釧路 Kushiro", "014000 014100"},
	{"014030", "014030", "十勝地方", "Tokachi Region", "20432 帯広 Obihiro", "014000 014030"},
	{"015010", "015000", "胆振地方", "Iburi Region", "21323 室蘭 Muroran", "015000"},
	{"015020", "015000", "日高地方", "Hidaka Region", "22327 浦河 Urakawa", "015000"},
	{"016010", "016000", "石狩地方", "Ishikari Region", "14163 札幌 Sapporo", "016000"},
	{"016020", "016000", "空知地方", "Sorachi Region", "15356 岩見沢 Iwamizawa", "016000"},
	{"016030", "016000", "後志地方", "Shiribeshi Region", "16217 倶知安 Kutchan", "016000"},
	{"017010", "017000", "渡島地方", "Oshima Region", "23232 函館 Hakodate", "017000"},
	{"017020", "017000", "檜山地方", "Hiyama Region", "24217 江差 Esashi", "017000"},
	{"020010", "020000", "津軽", "Tsugaru", "31312/020011 青森 Aomori, 31436/020013 深浦 Fukaura, 31461/020014 弘前 Hirosaki",
		"020000 020010 020100"},
	{"020020", "020000", "下北", "Shimokita", "31111 むつ Mutsu", "020000 020200 020100"},
	{"020030", "020000", "三八上北", "Sanpachi Kamikita", "31602 八戸 Hachinohe", "020000 020200 020030"},
	{"030010", "030000", "内陸", "Inland", "33431/030011 盛岡 Morioka, 33071/030012 二戸 Ninohe, 33911/030016 一関 Ichinoseki",
		"030000 030010"},
	{"030020", "030000", "沿岸北部", "Northern Coast", "33472 宮古 Miyako", "030000 030100"},
	{"030030", "030000", "沿岸南部", "Southern Coast", "33877 大船渡 Ofunato", "030000 030100"},
	{"040010", "040000", "東部", "Eastern Region",
		"34392/040011 仙台 Sendai, 34292/040012 石巻 Ishinomaki, 34216/040013 古川 Furukawa", "040000 040010"},
	{"040020", "040000", "西部", "Western Region", "34461 白石 Shiroishi", "040000 040020"},
	{"050010", "050000", "沿岸", "Coast", "32402 秋田 Akita", "050000"},
	{"050020", "050000", "内陸", "Inland", "32596/050022 横手 Yokote, 32126/050021 鷹巣 Takanosu", "050000"},
	{"060010", "060000", "村山", "Murayama", "35426 山形 Yamagata", "060000"},
	{"060020", "060000", "置賜", "Okitama", "35552 米沢 Yonezawa", "060000"},
	{"060030", "060000", "庄内", "Shonai", "35052 酒田 Sakata", "060000"},
	{"060040", "060000", "最上", "Mogami", "35162 新庄 Shinjo", "060000"},
	{"070010", "070000", "中通り", "Nakadori",
		"36127/070011 福島 Fukushima, 36667/070013 白河 Shirakawa, 36476/070012 郡山 Koriyama", "070000 070100"},
	{"070020", "070000", "浜通り", "Hamadori", "36846/070023 小名浜 Onahama, 36151/070021 相馬 Soma", "070000 070100"},
	{"070030", "070000", "会津", "Aizu", "36361/070032 若松 Wakamatsu, 36641/070033 田島 Tajima", "070000 070030"},
	{"080010", "080000", "北部", "Northern Region", "40201 水戸 Mito", "080000"},
	{"080020", "080000", "南部", "Southern Region", "40341 土浦 Tsuchiura", "080000"},
	{"090010", "090000", "南部", "Southern Region", "41277 宇都宮 Utsunomiya", "090000"},
	{"090020", "090000", "北部", "Northern Region", "41141 大田原 Otawara", "090000"},
	{"100010", "100000", "南部", "Southern Region", "42251 前橋 Maebashi", "100000 100010"},
	{"100020", "100000", "北部", "Northern Region", "42091 みなかみ Minakami", "100000 100020"},
	{"110010", "110000", "南部", "Southern Region", "43241 さいたま Saitama", "110000"},
	{"110020", "110000", "北部", "Northern Region", "43056 熊谷 Kumagaya", "110000"},
	{"110030", "110000", "秩父地方", "Chichibu Region", "43156 秩父 Chichibu", "110000"},
	{"120010", "120000", "北西部", "North-western Region", "45212 千葉 Chiba", "120000"},
	{"120020", "120000", "北東部", "North-eastern Region", "45148 銚子 Choshi", "120000"},
	{"120030", "120000", "南部", "Southern Region", "45401 館山 Tateyama", "120000"},
	{"130010", "130000", "東京地方", "Tokyo Region", "44132 東京 Tokyo", "130010"},
	{"130020", "130000", "伊豆諸島北部", "Northern Izu Islands", "44172 大島 Oshima", "130100 130020"},
	{"130030", "130000", "伊豆諸島南部", "Southern Izu Islands", "44263 八丈島 Hachijojima", "130100 130030"},
	{"130040", "130000", "小笠原諸島", "Ogasawara Islands", "44301 父島 Chichijima", "130040"},
	{"140010", "140000", "東部", "Eastern Region", "46106 横浜 Yokohama", "140000"},
	{"140020", "140000", "西部", "Western Region", "46166 小田原 Odawara", "140000"},
	{"150010", "150000", "下越", "Kaetsu", "54232/150011 新潟 Niigata, 54421/150014 津川 Tsugawa", "150000"},
	{"150020", "150000", "中越", "Chuetsu", "54501/150021 長岡 Nagaoka, 54841/150025 湯沢 Yuzawa", "150000"},
	{"150030", "150000", "上越", "Joetsu", "54651 高田 Takada", "150000"},
	{"150040", "150000", "佐渡", "Sado", "54157 相川 Aikawa", "150000"},
	{"160010", "160000", "東部", "Eastern Region", "55102 富山 Toyama", "160000"},
	{"160020", "160000", "西部", "Western Region", "55091 伏木 Fushiki", "160000"},
	{"170010", "170000", "加賀", "Kaga", "56227 金沢 Kanazawa", "170000"},
	{"170020", "170000", "能登", "Noto", "56052 輪島 Wajima", "170000"},
	{"180010", "180000", "嶺北", "Reihoku", "57066/180011 福井 Fukui, 57121/180013 大野 Ono", "180000"},
	{"180020", "180000", "嶺南", "Reinan", "57248 敦賀 Tsuruga", "180000"},
	{"190010", "190000", "中・西部", "Central Western Region", "49142 甲府 Kofu", "190000"},
	{"190020", "190000", "東部・富士五湖", "Eastern Region and Fuji Five Lakes", "49251 河口湖 Kawaguchiko", "190000"},
	{"200010", "200000", "北部", "Northern Region", "48156 長野 Nagano", "200000 200010"},
	{"200020", "200000", "中部", "Central Region",
		"48361/200023 松本 Matsumoto, 48491/200025 諏訪 Suwa, 48331/200022 軽井沢 Karuizawa", "200000 200100"},
	{"200030", "200000", "南部", "Southern Region", "48767 飯田 Iida", "200000 200100"},
	{"210010", "210000", "美濃地方", "Mino Region", "52586 岐阜 Gifu", "210000 210010"},
	{"210020", "210000", "飛騨地方", "Hida Region", "52146 高山 Takayama", "210000 210020"},
	{"220010", "220000", "中部", "Central Region", "50331 静岡 Shizuoka", "220000"},
	{"220020", "220000", "伊豆", "Izu", "50281/220021 網代 Ajiro, 50561/220022 石廊崎 Irozaki", "220000"},
	{"220030", "220000", "東部", "Eastern Region", "50206 三島 Mishima", "220000"},
	{"220040", "220000", "西部", "Western Region", "50456/220042 浜松 Hamamatsu, 50551/220042 御前崎 Omaezaki", "220000"},
	{"230010", "230000", "西部", "Western Region", "51106 名古屋 Nagoya", "230000"},
	{"230020", "230000", "東部", "Eastern Region", "51331 豊橋 Toyohashi", "230000"},
	{"240010", "240000", "北中部", "Northern Central Region",
		"53133/240011 津 Tsu, 53061/240012 四日市 Yokkaichi, 53112/240013 上野 Ueno", "240000"},
	{"240020", "240000", "南部", "Southern Region", "53378 尾鷲 Owase", "240000"},
	{"250010", "250000", "南部", "Southern Region", "60216 大津 Otsu", "250000 250010"},
	{"250020", "250000", "北部", "Northern Region", "60131 彦根 Hikone", "250000 250020"},
	{"260010", "260000", "南部", "Southern Region", "61286 京都 Kyoto", "260000 260010"},
	{"260020", "260000", "北部", "Northern Region", "61111 舞鶴 Maizuru", "260000 260020"},
	{"270000", "270000", "大阪府", "Osaka Prefecture", "62078 大阪 Osaka", "270000"},
	{"280010", "280000", "南部", "Southern Region",
		"63518/280011 神戸 Kobe, 63576/280016, 63571/280016 洲本 Sumoto, 63383/280015 姫路 Himeji", "280000 280010"},
	{"280020", "280000", "北部", "Northern Region", "63051 豊岡 Toyooka", "280000 280020"},
	{"290010", "290000", "北部", "Northern Region", "64036 奈良 Nara", "290000"},
	{"290020", "290000", "南部", "Southern Region", "64227 風屋 Kazeya", "290000"},
	{"300010", "300000", "北部", "Northern Region", "65042 和歌山 Wakayama", "300000"},
	{"300020", "300000", "南部", "Southern Region", "65356 潮岬 Shionomisaki", "300000"},
	{"310010", "310000", "東部", "Eastern Region", "69122 鳥取 Tottori", "310000"},
	{"310020", "310000", "中・西部", "Central Western Region", "69076 米子 Yonago", "310000"},
	{"320010", "320000", "東部", "Eastern Region", "68132 松江 Matsue", "320000"},
	{"320020", "320000", "西部", "Western Region", "68376 浜田 Hamada", "320000"},
	{"320030", "320000", "隠岐", "Oki", "68022 西郷 Saigo", "320000"},
	{"330010", "330000", "南部", "Southern Region", "66408 岡山 Okayama", "330000 330010"},
	{"330020", "330000", "北部", "Northern Region", "66186 津山 Tsuyama", "330000 330020"},
	{"340010", "340000", "南部", "Southern Region",
		"67437/340011 広島 Hiroshima, 67511/340011 呉 Kure, 67401/340012 福山 Fukuyama", "340000 340010"},
	{"340020", "340000", "北部", "Northern Region", "67116 庄原 Shobara", "340000 340020"},
	{"350010", "350000", "西部", "Western Region", "81428 下関 Shimonoseki", "350000"},
	{"350020", "350000", "中部", "Central Region", "81286 山口 Yamaguchi", "350000"},
	{"350030", "350000", "東部", "Eastern Region", "81481 柳井 Yanai", "350000"},
	{"350040", "350000", "北部", "Northern Region", "81071 萩 Hagi", "350000"},
	{"360010", "360000", "北部", "Northern Region", "71106/360011 徳島 Tokushima, 71066/360014 池田 Ikeda", "360000"},
	{"360020", "360000", "南部", "Southern Region", "71266 日和佐 Hiwasa", "360000"},
	{"370000", "370000", "香川県", "Kagawa Prefecture", "72086 高松 Takamatsu", "370000"},
	{"380010", "380000", "中予", "Chuyo", "73166 松山 Matsuyama", "380000"},
	{"380020", "380000", "東予", "Toyo", "73136/380021 新居浜 Niihama, 73141/380021 新居浜 Niihama", "380000"},
	{"380030", "380000", "南予", "Nan-yo", "73442 宇和島 Uwajima", "380000"},
	{"390010", "390000", "中部", "Central Region", "74182 高知 Kochi", "390000"},
	{"390020", "390000", "東部", "Eastern Region", "74372 室戸岬 Cape Muroto", "390000"},
	{"390030", "390000", "西部", "Western Region", "74516 清水 Shimizu", "390000"},
	{"400010", "400000", "福岡地方", "Fukuoka Region", "82182 福岡 Fukuoka", "400000"},
	{"400020", "400000", "北九州地方", "Kitakyushu Region", "82056 八幡 Yahata", "400000"},
	{"400030", "400000", "筑豊地方", "Chikuho Region", "82136 飯塚 Iizuka", "400000"},
	{"400040", "400000", "筑後地方", "Chikugo Region", "82306 久留米 Kurume", "400000"},
	{"410010", "410000", "南部", "Southern Region", "85142 佐賀 Saga", "410000"},
	{"410020", "410000", "北部", "Northern Region", "85116 伊万里 Imari", "410000"},
	{"420010", "420000", "南部", "Southern Region", "84496 長崎 Nagasaki", "420000 420100"},
	{"420020", "420000", "北部", "Northern Region", "84266 佐世保 Sasebo", "420000 420100"},
	{"420030", "420000", "壱岐・対馬", "Iki Tsushima", "84072 厳原 Izuhara", "420000 420030"},
	{"420040", "420000", "五島", "Goto", "84536 福江 Fukue", "420000 420100"},
	{"430010", "430000", "熊本地方", "Kumamoto Region", "86141 熊本 Kumamoto", "430000"},
	{"430020", "430000", "阿蘇地方", "Aso Region", "86111 阿蘇乙姫 Aso-Otohime", "430000"},
	{"430030", "430000", "天草・芦北地方", "Amakusa Ashikita Region", "86491 牛深 Ushibuka", "430000"},
	{"430040", "430000", "球磨地方", "Kuma Region", "86467 人吉 Hitoyoshi", "430000"},
	{"440010", "440000", "中部", "Central Region", "83216 大分 Oita", "440000"},
	{"440020", "440000", "北部", "Northern Region", "83051 中津 Nakatsu", "440000"},
	{"440030", "440000", "西部", "Western Region", "83137 日田 Hita", "440000"},
	{"440040", "440000", "南部", "Southern Region", "83401 佐伯 Saiki", "440000"},
	{"450010", "450000", "南部平野部", "Plain Area of Southern Region", "87376/450011 宮崎 Miyazaki, 87492/450012 油津 Aburatsu",
		"450000"},
	{"450020", "450000", "北部平野部", "Plain Area of Northern Region", "87141 延岡 Nobeoka", "450000"},
	{"450030", "450000", "南部山沿い", "Area along mountains of Southern Region", "87426 都城 Miyakonojo", "450000"},
	{"450040", "450000", "北部山沿い", "Area along mountains of Northern Region", "87041 高千穂 Takachiho", "450000"},
	{"460010", "460100", "薩摩地方", "Satsuma Region",
		"88317/460011 鹿児島 Kagoshima, 88061/460012 阿久根 Akune, 88466/460015 枕崎 Makurazaki", "460100"},
	{"460020", "460100", "大隅地方", "Osumi Region", "88442 鹿屋 Kanoya", "460100"},
	{"460030", "460100", "種子島・屋久島地方", "Tanegashima Yakushima Region", "88612 種子島 Tanegashima", "460100"},
	{"460040", "460040", "奄美地方", "Amami Region", "88837/460041 名瀬 Naze, 88971/460042 沖永良部 Okinoerabu", "460040"},
	{"471010", "471000", "本島中南部", "Central and Southern Main Island", "91197 那覇 Naha", "471000"},
	{"471020", "471000", "本島北部", "Northern Main Island", "91107 名護 Nago", "471000"},
	{"471030", "471000", "久米島", "Kumejima", "91146 久米島 Kumejima", "471000"},
	{"472000", "472000", "大東島地方", "Daitojima Region", "92011 南大東 Minamidaito", "472000"},
	{"473000", "473000", "宮古島地方", "Miyakojima Region", "93041 宮古島 Miyakojima", "473000"},
	{"474010", "474000", "石垣島地方", "Ishigakijima Region", "94081 石垣島 Ishigakijima", "474000"},
	{"474020", "474000", "与那国島地方", "Yonagunijima Region", "94017 与那国島 Yonagunijima", "474000"},
}
