package main

// prefecture is one of the 47, with its capital and the forecast area (a class10 code) that the capital lies in. The
// area's code starts with the prefecture's number.
type prefecture struct {
	name, kana, en                       string
	class10                              string
	capital, capitalKana, capitalEnglish string
}

// prefectures are in the order of their numbers (JIS X 0401), from 1. Tokyo has no capital of another name, and 山形市
// sounds like 山県市 in Gifu: for its kana and English name the whole table of areas must decide.
var prefectures = [47]prefecture{
	{"北海道", "ほっかいどう", "Hokkaido", "016010", "札幌市", "さっぽろし", "Sapporo City"},
	{"青森県", "あおもりけん", "Aomori", "020010", "青森市", "あおもりし", "Aomori City"},
	{"岩手県", "いわてけん", "Iwate", "030010", "盛岡市", "もりおかし", "Morioka City"},
	{"宮城県", "みやぎけん", "Miyagi", "040010", "仙台市", "せんだいし", "Sendai City"},
	{"秋田県", "あきたけん", "Akita", "050010", "秋田市", "あきたし", "Akita City"},
	{"山形県", "やまがたけん", "Yamagata", "060010", "山形市", "", ""},
	{"福島県", "ふくしまけん", "Fukushima", "070010", "福島市", "ふくしまし", "Fukushima City"},
	{"茨城県", "いばらきけん", "Ibaraki", "080010", "水戸市", "みとし", "Mito City"},
	{"栃木県", "とちぎけん", "Tochigi", "090010", "宇都宮市", "うつのみやし", "Utsunomiya City"},
	{"群馬県", "ぐんまけん", "Gunma", "100010", "前橋市", "まえばしし", "Maebashi City"},
	{"埼玉県", "さいたまけん", "Saitama", "110010", "さいたま市", "さいたまし", "Saitama City"},
	{"千葉県", "ちばけん", "Chiba", "120010", "千葉市", "ちばし", "Chiba City"},
	{"東京都", "とうきょうと", "Tokyo", "130010", "", "", ""},
	{"神奈川県", "かながわけん", "Kanagawa", "140010", "横浜市", "よこはまし", "Yokohama City"},
	{"新潟県", "にいがたけん", "Niigata", "150010", "新潟市", "にいがたし", "Niigata City"},
	{"富山県", "とやまけん", "Toyama", "160010", "富山市", "とやまし", "Toyama City"},
	{"石川県", "いしかわけん", "Ishikawa", "170010", "金沢市", "かなざわし", "Kanazawa City"},
	{"福井県", "ふくいけん", "Fukui", "180010", "福井市", "ふくいし", "Fukui City"},
	{"山梨県", "やまなしけん", "Yamanashi", "190010", "甲府市", "こうふし", "Kofu City"},
	{"長野県", "ながのけん", "Nagano", "200010", "長野市", "ながのし", "Nagano City"},
	{"岐阜県", "ぎふけん", "Gifu", "210010", "岐阜市", "ぎふし", "Gifu City"},
	{"静岡県", "しずおかけん", "Shizuoka", "220010", "静岡市", "しずおかし", "Shizuoka City"},
	{"愛知県", "あいちけん", "Aichi", "230010", "名古屋市", "なごやし", "Nagoya City"},
	{"三重県", "みえけん", "Mie", "240010", "津市", "つし", "Tsu City"},
	{"滋賀県", "しがけん", "Shiga", "250010", "大津市", "おおつし", "Otsu City"},
	{"京都府", "きょうとふ", "Kyoto", "260010", "京都市", "きょうとし", "Kyoto City"},
	{"大阪府", "おおさかふ", "Osaka", "270000", "大阪市", "おおさかし", "Osaka City"},
	{"兵庫県", "ひょうごけん", "Hyogo", "280010", "神戸市", "こうべし", "Kobe City"},
	{"奈良県", "ならけん", "Nara", "290010", "奈良市", "ならし", "Nara City"},
	{"和歌山県", "わかやまけん", "Wakayama", "300010", "和歌山市", "わかやまし", "Wakayama City"},
	{"鳥取県", "とっとりけん", "Tottori", "310010", "鳥取市", "とっとりし", "Tottori City"},
	{"島根県", "しまねけん", "Shimane", "320010", "松江市", "まつえし", "Matsue City"},
	{"岡山県", "おかやまけん", "Okayama", "330010", "岡山市", "おかやまし", "Okayama City"},
	{"広島県", "ひろしまけん", "Hiroshima", "340010", "広島市", "ひろしまし", "Hiroshima City"},
	{"山口県", "やまぐちけん", "Yamaguchi", "350020", "山口市", "やまぐちし", "Yamaguchi City"},
	{"徳島県", "とくしまけん", "Tokushima", "360010", "徳島市", "とくしまし", "Tokushima City"},
	{"香川県", "かがわけん", "Kagawa", "370000", "高松市", "たかまつし", "Takamatsu City"},
	{"愛媛県", "えひめけん", "Ehime", "380010", "松山市", "まつやまし", "Matsuyama City"},
	{"高知県", "こうちけん", "Kochi", "390010", "高知市", "こうちし", "Kochi City"},
	{"福岡県", "ふくおかけん", "Fukuoka", "400010", "福岡市", "ふくおかし", "Fukuoka City"},
	{"佐賀県", "さがけん", "Saga", "410010", "佐賀市", "さがし", "Saga City"},
	{"長崎県", "ながさきけん", "Nagasaki", "420010", "長崎市", "ながさきし", "Nagasaki City"},
	{"熊本県", "くまもとけん", "Kumamoto", "430010", "熊本市", "くまもとし", "Kumamoto City"},
	{"大分県", "おおいたけん", "Oita", "440010", "大分市", "おおいたし", "Oita City"},
	{"宮崎県", "みやざきけん", "Miyazaki", "450010", "宮崎市", "みやざきし", "Miyazaki City"},
	{"鹿児島県", "かごしまけん", "Kagoshima", "460010", "鹿児島市", "かごしまし", "Kagoshima City"},
	{"沖縄県", "おきなわけん", "Okinawa", "471010", "那覇市", "なはし", "Naha City"},
}

// prefectureOf returns the number of the prefecture that an office or class10 code belongs to, 0 if there is none.
func prefectureOf(code string) int {
	if len(code) < 2 {
		return 0
	}
	n := int(code[0]-'0')*10 + int(code[1]-'0')
	if code[0] < '0' || code[0] > '9' || code[1] < '0' || code[1] > '9' || n > len(prefectures) {
		return 0
	}
	return n
}

// office is a forecast office whose area is not a whole prefecture, with its main class10 area. Elsewhere the office is
// the prefecture.
type office struct{ code, name, en, class10 string }

var offices = [...]office{
	{"011000", "宗谷地方", "Soya", "011000"},
	{"012000", "上川・留萌地方", "Kamikawa Rumoi", "012010"},
	{"013000", "網走・北見・紋別地方", "Abashiri Kitami Mombetsu", "013010"},
	{"014030", "十勝地方", "Tokachi", "014030"},
	{"014100", "釧路・根室地方", "Kushiro Nemuro", "014020"},
	{"015000", "胆振・日高地方", "Iburi Hidaka", "015010"},
	{"016000", "石狩・空知・後志地方", "Ishikari Sorachi Shiribeshi", "016010"},
	{"017000", "渡島・檜山地方", "Oshima Hiyama", "017010"},
	{"460040", "奄美地方", "Amami", "460040"},
	{"460100", "鹿児島県（奄美地方除く）", "Kagoshima (Excluding Amami)", "460010"},
	{"471000", "沖縄本島地方", "Okinawa Main Island", "471010"},
	{"472000", "大東島地方", "Daitojima", "472000"},
	{"473000", "宮古島地方", "Miyakojima", "473000"},
	{"474000", "八重山地方", "Yaeyama", "474010"},
}

// fileOf returns the office in whose forecast file an office's areas are: Tokachi and Amami have no file of their own.
func fileOf(office string) string {
	switch office {
	case "014030":
		return "014100"
	case "460040":
		return "460100"
	}
	return office
}
