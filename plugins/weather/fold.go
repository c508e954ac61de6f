package main

import (
	"slices"
	"strings"
	"unicode"
)

// clean makes one line of a text from JMA: one space between words, digits and signs in their narrow form, at most 200
// characters.
func clean(text string) string {
	return limit(strings.Join(strings.Fields(strings.Map(narrow, text)), " "), 200)
}

// cleanCode is clean for a code of a few letters.
func cleanCode(text string) string { return limit(clean(text), 8) }

// limit cuts a text to so many characters.
func limit(text string, characters int) string {
	for i := range text {
		if characters--; characters < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// narrow turns the wide forms of digits, Latin letters and signs (U+FF01 to U+FF5E) and the wide space into the usual
// ones.
func narrow(r rune) rune {
	switch {
	case r >= '！' && r <= '～':
		return r - '！' + '!'
	case r == '\u3000':
		return ' '
	case unicode.IsControl(r):
		return ' '
	}
	return r
}

// fold brings a place name into the form in which names are compared: narrow letters in lower case, wide katakana,
// voiced kana as one character, no difference between large and small ヶ, and no variation selectors (☀️, 葛󠄀). Unlike
// x/text's NFKC it needs no tables.
func fold(name string) string {
	if isFolded(name) {
		return name
	}
	var b strings.Builder
	var last rune // what will be written next: a voicing mark may still change it
	for _, r := range name {
		if unicode.Is(unicode.Variation_Selector, r) {
			continue
		}
		r = foldRune(r)
		if voiced := voice(last, r); voiced != 0 {
			last = voiced
			continue
		}
		if last != 0 {
			b.WriteRune(last)
		}
		last = r
	}
	if last != 0 {
		b.WriteRune(last)
	}
	return strings.TrimSpace(b.String())
}

// isFolded reports that a name is of kanji and hiragana alone, as most are: fold would not change it.
func isFolded(name string) bool {
	for _, r := range name {
		if (r < '一' || r > '龥') && (r < 'ぁ' || r > 'ん') || oldKanji[r] != 0 {
			return false
		}
	}
	return true
}

// oldKanji are the forms of characters before 1946 that occur in names of places, and variants of today's, with the
// usual ones.
var oldKanji = func() map[rune]rune {
	const pairs = "廣広濱浜澤沢國国縣県區区櫻桜嶋島嶌島彌弥邊辺邉辺齋斎齊斉龍竜瀧滝驛駅圓円會会萬万豐豊鹽塩灣湾礪砺檜桧舘館薗園﨑崎嵜崎髙高" +
		"眞真靜静德徳澁渋藏蔵榮栄總総當当壽寿惠恵寶宝應応兒児鐵鉄學学淺浅條条舊旧鷄鶏來来關関驒騨鷗鴎峯峰嶽岳埜野曾曽禮礼祿禄與与辨弁" +
		"佛仏獨独圖図團団壹壱藝芸莊荘權権臺台氣気縱縦歸帰"
	table := map[rune]rune{}
	runes := []rune(pairs)
	for i := 0; i+1 < len(runes); i += 2 {
		if runes[i] != runes[i+1] {
			table[runes[i]] = runes[i+1]
		}
	}
	return table
}()

func foldRune(r rune) rune {
	switch {
	case r >= 'ｦ' && r <= 'ﾟ':
		return wideKana[r-'ｦ']
	case r == 'ヶ':
		return 'ケ'
	case r == 'ヵ':
		return 'カ'
	case oldKanji[r] != 0:
		return oldKanji[r]
	}
	return unicode.ToLower(narrow(r))
}

// wideKana are the wide forms of U+FF66 to U+FF9F; the last two are the combining voicing marks.
var wideKana = []rune("ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u3099\u309A")

// voice returns the kana that a voicing mark makes of r, 0 if mark is none.
func voice(r, mark rune) rune {
	const voiceable, semiVoiceable = "かきくけこさしすせそたちつてとはひふへほ", "はひふへほ"
	switch {
	case (mark == '\u3099' || mark == '゛') && strings.ContainsRune(voiceable, hiragana(r)):
		return r + 1
	case (mark == '\u309A' || mark == '゜') && strings.ContainsRune(semiVoiceable, hiragana(r)):
		return r + 2
	}
	return 0
}

// hiragana returns the hiragana of a katakana, and any other character as it is.
func hiragana(r rune) rune {
	if r >= 'ァ' && r <= 'ヶ' {
		return r - 'ァ' + 'ぁ'
	}
	return r
}

func isKana(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) || r == 'ー' }

// romaji brings a Latin name into a form that does not depend on the system of romanisation: Tōkyō, Tokyo and Toukyou
// are the same, and so are Shimbashi and Shinbashi, Ohta and Ota.
func romaji(name string) string {
	spelling := make([]byte, 0, 64)
	for _, r := range name {
		c := letter(r)
		if c == 0 {
			continue
		}
		last := byte(0)
		if len(spelling) > 0 {
			last = spelling[len(spelling)-1]
		}
		switch {
		case last == 'o' && (c == 'o' || c == 'u' || c == 'h'), last == 'u' && c == 'u':
			continue
		case last == 'm' && (c == 'b' || c == 'p' || c == 'm'):
			spelling[len(spelling)-1] = 'n'
		}
		spelling = append(spelling, c)
	}
	return string(spelling)
}

// letter returns r as a plain lower-case letter or a digit, 0 if it is neither.
func letter(r rune) byte {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return byte(r)
	case r >= 'A' && r <= 'Z':
		return byte(r - 'A' + 'a')
	case r > unicode.MaxASCII:
		long := []rune("āâīîūûēêōôĀÂĪÎŪÛĒÊŌÔ")
		if i := slices.Index(long, r); i >= 0 {
			return "aaiiuueeooaaiiuueeoo"[i]
		}
	}
	return 0
}
