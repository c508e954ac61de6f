package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// previous is the text file that a write replaces, as far as the new content takes over from it: its encoding, byte
// order mark and line ends, and the bytes that are no text. file_read shows those as U+FFFD, so whoever writes the
// content back has never seen them.
type previous struct {
	path     string
	encoding *encoding
	marked   bool
	// feeds counts the ends of lines, and crlf those with a carriage return.
	feeds, crlf int
	// damaged are the lines that hold bytes that are no text, bad counts these bytes.
	damaged []damagedLine
	bad     int
	// lost is set if there are too many of them to put them back.
	lost bool
}

// damagedLine is a line with bytes that are no text.
type damagedLine struct {
	number int
	shown  string   // without its end
	hidden [][]byte // what each U+FFFD in it stands for
}

// maxDamage is the number of bytes that are no text which a write keeps; with more it is refused.
const maxDamage = 64 << 10

// lookAt reads the file that is about to be replaced. It refuses one whose content file_read does not show. name is the
// encoding that the caller names, or empty.
func lookAt(ctx context.Context, at location, name string) (*previous, error) {
	f, err := openRegular(at.path, at.full)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &previous{path: at.path, marked: bom(f.head) != nil}
	named := encodingNamed(name)
	if f.isText(named) != nil {
		k := sniff(f.head)
		if k == (kind{}) {
			k.en, k.ja = "text in ISO-2022-JP", "ISO-2022-JP のテキスト"
		}
		return nil, refuse("%[1]s is %[2]s, whose content file_read cannot show, and overwriting would lose it: if that is meant, delete the file first, else choose another name",
			"%[1]s は%[3]sで、file_read では内容を表示できません。上書きすると失われます。それでよければ先に削除し、そうでなければ別の名前にしてください", at.path, k.en, k.ja)
	}
	if f.size > maxSearchBytes {
		return nil, refuse("%s has %d bytes, too many to see whether text that replaces it would lose some of them: if that is meant, delete the file first, else choose another name",
			"%s は %d バイトあり、上書きで失われる内容がないか確認できません。それでよければ先に削除し、そうでなければ別の名前にしてください", at.path, f.size)
	}
	sample, err := f.sample()
	if err != nil {
		return nil, err
	}
	if p.encoding, err = f.encoding(sample); err != nil {
		return nil, err
	}
	if !p.marked && named != nil && named != p.encoding {
		// The caller may know better, but only if that shows everything.
		other := &previous{path: at.path, encoding: named}
		if err := other.read(ctx, f); err != nil {
			return nil, err
		}
		if other.bad == 0 {
			return other, nil
		}
	}
	return p, p.read(ctx, f)
}

// read goes through the whole file in pieces that end with lines.
func (p *previous) read(ctx context.Context, f *regular) error {
	number := 1
	for offset := bomSize(f.head); offset < f.size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := f.at(offset, maxRead)
		if err != nil {
			return err
		}
		if len(raw) == 0 {
			break // it has become shorter
		}
		n := p.scan(raw, offset+int64(len(raw)) >= f.size, &number)
		offset += int64(n)
	}
	return nil
}

// scan takes whole lines from the beginning of raw, and all of it if it is the last piece or one line. It returns how
// many bytes it has taken.
func (p *previous) scan(raw []byte, last bool, number *int) int {
	line := damagedLine{number: *number}
	start, i, bad, before := 0, 0, 0, rune(0)
	cut := false // within the last character
	end := func() {
		if bad > 0 {
			text := p.encoding.at(raw[start:i], 0, true).text
			line.shown = strings.TrimSuffix(string(text), "\r")
			p.damaged, p.bad = append(p.damaged, line), p.bad+bad
			p.lost = p.lost || p.bad > maxDamage
		}
	}
	for i < len(raw) {
		r, size := p.encoding.next(raw[i:])
		if cut = cut || size == 0; cut && !last {
			break
		}
		if cut {
			r, size = -1, 1
		}
		if r < 0 {
			bad++
		}
		if (r < 0 || r == utf8.RuneError) && len(line.hidden) <= maxDamage {
			line.hidden = append(line.hidden, bytes.Clone(raw[i:i+size]))
		}
		if r == '\n' {
			end()
			p.feeds++
			if before == '\r' {
				p.crlf++
			}
			*number++
			line, start, bad = damagedLine{number: *number}, i+size, 0
		}
		before, i = r, i+size
	}
	if !last && start > 0 {
		return start
	}
	p.lost = p.lost || !last && bad > 0 // the rest of the line would be another one
	end()
	return i
}

// encode returns the bytes of the new content in an encoding, and sentences about what it has kept of the file or
// changed in it.
func (p *previous) encode(ctx context.Context, content string, as *encoding) (data []byte, notes []string, err error) {
	if p.crlf > 0 && p.crlf == p.feeds && strings.Contains(content, "\n") && !strings.Contains(content, "\r\n") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
		notes = append(notes, say(ctx, "Its lines end in CRLF, as before.", "改行は元と同じ CRLF です。"))
	}
	hidden, err := p.restore(content, as)
	if err != nil {
		return nil, nil, err
	}
	if p.bad > 0 {
		notes = append(notes, say(ctx, "The %d bytes that are not valid %s are as before.",
			"%d バイトの %s として正しくない部分は元のままです。", p.bad, p.encoding.name))
	}
	switch {
	case as != p.encoding:
		notes = append(notes, say(ctx, "Its encoding was %s and now is %s.", "文字コードを %s から %s に変更しました。", p.encoding.name,
			as.name))
	case as != utf8Text:
		notes = append(notes, say(ctx, "Its encoding is %s, as before.", "文字コードは元と同じ %s です。", as.name))
	}
	if as == p.encoding && p.marked || as.wide() && as != p.encoding {
		content = strings.TrimPrefix(content, "\ufeff")
		data = append(data, as.mark...)
		if as == p.encoding {
			notes = append(notes, say(ctx, "It begins with a byte order mark, as before.", "先頭の BOM は元のままです。"))
		}
	}
	for _, original := range hidden {
		at := strings.IndexRune(content, utf8.RuneError)
		text, err := as.write(content[:at])
		if err != nil {
			return nil, nil, err
		}
		if data, content = append(data, text...), content[at+len("\ufffd"):]; original == nil {
			original = []byte("\ufffd")
		}
		data = append(data, original...)
	}
	text, err := as.write(content)
	return append(data, text...), notes, err
}

// restore finds what each U+FFFD of the new content stands for; nil for itself. Lines that are as they were shown keep
// their bytes. Of the others, those that hold U+FFFD must be as many as there were, with as many in each.
func (p *previous) restore(content string, as *encoding) ([][]byte, error) {
	if p.bad == 0 {
		return nil, nil
	}
	loss := func(number int) error {
		return refuse("%[1]s holds %[2]d bytes that are not valid %[3]s, which file_read shows as U+FFFD (\ufffd); this content would lose some of them (line %[4]d). "+
			"Keep each U+FFFD where it is, in the same encoding; or, if they are not wanted, delete the file first",
			"%[1]s には %[3]s として正しくないバイトが %[2]d あり、file_read では U+FFFD (\ufffd) と表示されます。この内容では一部が失われます (%[4]d 行目)。"+
				"U+FFFD をそのままの位置に残し、同じ文字コードで書き込んでください。不要であれば先にファイルを削除してください", p.path, p.bad, p.encoding.name, number)
	}
	if p.lost || as != p.encoding {
		return nil, loss(p.damaged[0].number)
	}
	shown := map[string][]int{} // the damaged lines that look so
	for i, line := range p.damaged {
		shown[line.shown] = append(shown[line.shown], i)
	}
	var lines []string // of the new content, with U+FFFD
	var from []int     // the damaged line that each is, or -1
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\r\n")
		if !strings.ContainsRune(line, utf8.RuneError) {
			continue
		}
		same := -1
		if all := shown[line]; len(all) > 0 {
			same, shown[line] = all[0], all[1:]
		}
		lines, from = append(lines, line), append(from, same)
	}
	var left []int
	for _, all := range shown {
		left = append(left, all...)
	}
	slices.Sort(left)
	var hidden [][]byte
	for i, line := range lines {
		count := strings.Count(line, "\ufffd")
		if from[i] < 0 && len(left) > 0 {
			if from[i], left = left[0], left[1:]; len(p.damaged[from[i]].hidden) != count {
				return nil, loss(p.damaged[from[i]].number)
			}
		}
		if from[i] >= 0 {
			hidden = append(hidden, p.damaged[from[i]].hidden...)
		} else {
			hidden = append(hidden, make([][]byte, count)...)
		}
	}
	if len(left) > 0 {
		return nil, loss(p.damaged[left[0]].number)
	}
	return hidden, nil
}
