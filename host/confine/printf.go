package confine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPrintf limits the text that one printf makes, in bytes, and its widths and precisions.
const maxPrintf = 1 << 20

// printfText formats as bash's printf does: flags, width, precision and "*", the conversions of C for integers and
// floating-point numbers, %s, %c, %b and %q. The format is used again until no argument is left. The complaints, about
// arguments that are no numbers for example, make the status 1. Width and precision of strings count bytes.
func printfText(format string, args []string) (text string, complaints []string) {
	p := printer{args: args}
	for {
		left := len(p.args)
		if !p.once(format) || len(p.args) == 0 || len(p.args) == left {
			return p.out.String(), p.complaints
		}
	}
}

type printer struct {
	out        strings.Builder
	args       []string
	complaints []string
}

func (p *printer) complain(format string, args ...any) bool {
	p.complaints = append(p.complaints, fmt.Sprintf(format, args...))
	return false
}

func (p *printer) next() string {
	if len(p.args) == 0 {
		return ""
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return arg
}

// once applies the format once. It returns false to end the whole.
func (p *printer) once(format string) bool {
	for format != "" {
		if p.out.Len() > maxPrintf {
			return p.complain("printf: the text has more than %d bytes", maxPrintf)
		}
		switch {
		case format[0] == '\\':
			text, size, _ := escape(format, false)
			p.out.WriteString(text)
			format = format[size:]
		case strings.HasPrefix(format, "%%"):
			p.out.WriteByte('%')
			format = format[2:]
		case format[0] == '%':
			size, more := p.convert(format)
			if !more {
				return false
			}
			format = format[size:]
		default:
			p.out.WriteByte(format[0])
			format = format[1:]
		}
	}
	return true
}

// convert formats what format, which begins with "%", asks for, and returns its size.
func (p *printer) convert(format string) (size int, more bool) {
	i := 1
	for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
		i++
	}
	flags := format[1:i]
	number := func() int {
		if i < len(format) && format[i] == '*' {
			i++
			n, _ := p.integer(p.next())
			return int(max(-maxPrintf, min(n, maxPrintf)))
		}
		n := 0
		for ; i < len(format) && format[i] >= '0' && format[i] <= '9'; i++ {
			n = min(10*n+int(format[i]-'0'), maxPrintf)
		}
		return n
	}
	width, precision := number(), -1
	if width < 0 {
		flags, width = flags+"-", -width
	}
	if i < len(format) && format[i] == '.' {
		i++
		precision = number()
	}
	for i < len(format) && strings.IndexByte("hlLjzt", format[i]) >= 0 {
		i++
	}
	if i == len(format) {
		return i, p.complain("printf: %s: missing format character", format)
	}
	verb := format[i]
	var text string
	switch verb {
	case 's', 'b', 'q', 'c':
		text, more = p.text(verb, precision)
	case 'd', 'i', 'u', 'o', 'x', 'X':
		text, more = p.whole(verb, flags, precision), true
	case 'e', 'E', 'f', 'F', 'g', 'G':
		text, more = p.float(verb, flags, precision), true
	default:
		return i, p.complain("printf: %%%c: this conversion is not supported", verb)
	}
	zeros := strings.Contains(flags, "0") && strings.IndexByte("sbqc", verb) < 0 &&
		(precision < 0 || strings.IndexByte("eEfFgG", verb) >= 0)
	p.out.WriteString(pad(text, width, strings.Contains(flags, "-"), zeros))
	return i + 1, more
}

func (p *printer) text(verb byte, precision int) (text string, more bool) {
	text, more = p.next(), true
	switch verb {
	case 'b':
		text, more = unescape(text)
	case 'q':
		text = quote(text)
	case 'c':
		return text[:min(1, len(text))], true
	}
	if precision >= 0 {
		text = text[:min(precision, len(text))]
	}
	return text, more
}

func (p *printer) whole(verb byte, flags string, precision int) string {
	n, _ := p.integer(p.next())
	sign, digits := "", ""
	if verb == 'd' || verb == 'i' {
		magnitude := uint64(n)
		switch {
		case n < 0:
			sign, magnitude = "-", -magnitude
		case strings.Contains(flags, "+"):
			sign = "+"
		case strings.Contains(flags, " "):
			sign = " "
		}
		digits = strconv.FormatUint(magnitude, 10)
	} else {
		digits = strconv.FormatUint(uint64(n), map[byte]int{'u': 10, 'o': 8, 'x': 16, 'X': 16}[verb])
	}
	if verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if precision == 0 && n == 0 {
		digits = ""
	}
	digits = strings.Repeat("0", max(0, precision-len(digits))) + digits
	if strings.Contains(flags, "#") && n != 0 {
		switch {
		case verb == 'x', verb == 'X':
			sign = "0" + string(verb)
		case verb == 'o' && digits[0] != '0':
			sign = "0"
		}
	}
	return sign + digits
}

func (p *printer) float(verb byte, flags string, precision int) string {
	arg := p.next()
	f, err := strconv.ParseFloat(strings.TrimSpace(arg), 64)
	if err != nil && !math.IsInf(f, 0) {
		f = 0
		if n, ok := character(arg); ok {
			f = float64(n)
		} else if arg != "" {
			p.complain("printf: %s: invalid number", arg)
		}
	}
	if precision < 0 {
		precision = 6
	}
	layout := "%"
	for _, flag := range "+ #" {
		if strings.ContainsRune(flags, flag) {
			layout += string(flag)
		}
	}
	text := fmt.Sprintf(layout+".*"+string(verb), precision, f)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		text = strings.TrimPrefix(strings.ToLower(text), "+")
	}
	return text
}

// character returns the number of the character behind a quote, as 'A.
func character(arg string) (int64, bool) {
	if arg == "" || arg[0] != '\'' && arg[0] != '"' {
		return 0, false
	}
	if len(arg) == 1 {
		return 0, true
	}
	r, size := utf8.DecodeRuneInString(arg[1:])
	if size == 1 {
		r = rune(arg[1])
	}
	return int64(r), true
}

// integer returns the number that an argument is or begins with, as in C.
func (p *printer) integer(arg string) (int64, bool) {
	if n, ok := character(arg); ok {
		return n, true
	}
	text := strings.TrimLeft(arg, " \t\n")
	negative := strings.HasPrefix(text, "-")
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	base, allowed := 10, "0123456789"
	if lower := strings.ToLower(digits); strings.HasPrefix(lower, "0x") {
		base, allowed, digits = 16, "0123456789abcdefABCDEF", digits[2:]
	} else if len(digits) > 1 && digits[0] == '0' {
		base, allowed = 8, "01234567"
	}
	rest := strings.TrimLeft(digits, allowed)
	digits = digits[:len(digits)-len(rest)]
	n, err := strconv.ParseUint(digits, base, 64)
	if arg != "" && (digits == "" || strings.TrimSpace(rest) != "") {
		p.complain("printf: %s: invalid number", arg)
		return int64(n), false
	}
	if err != nil && arg != "" {
		p.complain("printf: %s: the number is too large", arg)
		return math.MaxInt64, false
	}
	if negative {
		n = -n
	}
	return int64(n), true
}

func pad(text string, width int, left, zeros bool) string {
	missing := max(0, width-len(text))
	switch {
	case left:
		return text + strings.Repeat(" ", missing)
	case zeros:
		sign := len(text) - len(strings.TrimLeft(text, "+- "))
		if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X") {
			sign = 2
		}
		return text[:sign] + strings.Repeat("0", missing) + text[sign:]
	}
	return strings.Repeat(" ", missing) + text
}

// unescape returns the argument of %b; with \c the output ends.
func unescape(text string) (out string, more bool) {
	var b strings.Builder
	for text != "" {
		if text[0] != '\\' {
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		piece, size, end := escape(text, true)
		if end {
			return b.String(), false
		}
		b.WriteString(piece)
		text = text[size:]
	}
	return b.String(), true
}

// escape returns what the escape sequence at the beginning of text stands for. In the argument of %b a zero may precede
// octal digits, and \c ends the output.
func escape(text string, argument bool) (out string, size int, end bool) {
	if len(text) == 1 {
		return text, 1, false
	}
	c := text[1]
	if i := strings.IndexByte(`abefnrtv\E`, c); i >= 0 {
		return "\a\b\x1b\f\n\r\t\v\\\x1b"[i : i+1], 2, false
	}
	digits := func(from, most int, allowed string) string {
		to := from
		for to < len(text) && to-from < most && strings.IndexByte(allowed, text[to]) >= 0 {
			to++
		}
		return text[from:to]
	}
	const hex = "0123456789abcdefABCDEF"
	switch {
	case c == '"' || c == '\'' && !argument || c == '?' && !argument:
		return text[1:2], 2, false
	case c == 'c' && argument:
		return "", 2, true
	case c >= '0' && c <= '7':
		from := 1
		if argument && c == '0' {
			from = 2
		}
		octal := digits(from, 3, "01234567")
		n, _ := strconv.ParseUint("0"+octal, 8, 16)
		return string([]byte{byte(n)}), from + len(octal), false
	case c == 'x' && digits(2, 2, hex) != "":
		number := digits(2, 2, hex)
		n, _ := strconv.ParseUint(number, 16, 8)
		return string([]byte{byte(n)}), 2 + len(number), false
	case (c == 'u' || c == 'U') && digits(2, 8, hex) != "":
		number := digits(2, map[byte]int{'u': 4, 'U': 8}[c], hex)
		n, _ := strconv.ParseUint(number, 16, 32)
		return string(rune(n)), 2 + len(number), false
	}
	return text[:2], 2, false
}

// quote returns an argument as %q writes it: a word that the shell reads as the argument.
func quote(text string) string {
	if text == "" {
		return "''"
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return quoteDollar(text)
	}
	var b strings.Builder
	for i, r := range text {
		if strings.ContainsRune(" \t!\"$&'()*,;<>?[\\]^`{|}", r) || i == 0 && (r == '~' || r == '#') {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func quoteDollar(text string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		i := strings.IndexByte("\a\b\x1b\f\n\r\t\v\\'", text[0])
		switch {
		case i >= 0:
			b.WriteString(`\` + `abEfnrtv\'`[i:i+1])
		case r == utf8.RuneError && size == 1 || !unicode.IsPrint(r):
			for _, c := range []byte(text[:size]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String() + "'"
}
