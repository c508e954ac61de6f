package abi

// AppendString appends text, which must be UTF-8, to out as a JSON string. encoding/json does the same by reflection,
// which costs a guest many times as much.
func AppendString(out []byte, text string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := range len(text) {
		b := text[i]
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		out = append(out, text[start:i]...)
		start = i + 1
		switch b {
		case '"', '\\':
			out = append(out, '\\', b)
		case '\n':
			out = append(out, '\\', 'n')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
	}
	return append(append(out, text[start:]...), '"')
}
