package main

import (
	"bytes"
	"strings"
)

const (
	// sniffed is the number of bytes of a file that are read to detect its type.
	sniffed = 4096
	// sampled is the number of bytes from which the encoding of text is guessed.
	sampled = 256 << 10
)

// kind is a file's type by its first bytes. The zero value says nothing: it may be text.
type kind struct {
	mime   string
	en, ja string
	// program is code that a system would run, image a picture that clients can show.
	program, image bool
}

// signature is the beginning of files of a kind.
type signature struct {
	at    int
	magic string
	// weak magic could also begin a text: a NUL must follow within the sniffed bytes.
	weak bool
	kind
}

var signatures = []signature{
	{magic: "\x7fELF", kind: kind{"application/x-elf", "a program (ELF)", "プログラム (ELF)", true, false}},
	{magic: "MZ", weak: true, kind: kind{"application/vnd.microsoft.portable-executable", "a Windows program",
		"Windows プログラム", true, false}},
	{magic: "\xfe\xed\xfa\xce", kind: machO}, {magic: "\xfe\xed\xfa\xcf", kind: machO},
	{magic: "\xce\xfa\xed\xfe", kind: machO}, {magic: "\xcf\xfa\xed\xfe", kind: machO},
	{magic: "\xca\xfe\xba\xbe", kind: kind{"application/octet-stream", "a program (Mach-O or Java)",
		"プログラム (Mach-O または Java)", true, false}},
	{magic: "\x00asm", kind: kind{"application/wasm", "a program (WebAssembly)", "プログラム (WebAssembly)", true, false}},
	{magic: "dex\n", weak: true, kind: kind{"application/vnd.android.dex", "a program (Android)", "プログラム (Android)",
		true, false}},
	{magic: "L\x00\x00\x00\x01\x14\x02\x00", kind: kind{"application/x-ms-shortcut", "a Windows shortcut",
		"Windows ショートカット", true, false}},

	{magic: "\x89PNG\r\n\x1a\n", kind: kind{"image/png", "a PNG image", "PNG 画像", false, true}},
	{magic: "\xff\xd8\xff", kind: kind{"image/jpeg", "a JPEG image", "JPEG 画像", false, true}},
	{magic: "GIF87a", kind: gif}, {magic: "GIF89a", kind: gif},
	{at: 8, magic: "WEBP", weak: true, kind: kind{"image/webp", "a WebP image", "WebP 画像", false, true}},
	{magic: "BM", weak: true, kind: kind{"image/bmp", "a BMP image", "BMP 画像", false, false}},
	{magic: "II*\x00", kind: tiff}, {magic: "MM\x00*", kind: tiff},
	{magic: "\x00\x00\x01\x00", kind: kind{"image/vnd.microsoft.icon", "an icon", "アイコン", false, false}},
	{at: 4, magic: "ftyp", weak: true, kind: kind{"video/mp4", "a video or image (MP4, HEIC, AVIF)",
		"動画または画像 (MP4, HEIC, AVIF)", false, false}},
	{at: 8, magic: "WAVE", weak: true, kind: kind{"audio/wav", "a sound (WAV)", "音声 (WAV)", false, false}},
	{magic: "ID3", weak: true, kind: kind{"audio/mpeg", "a sound (MP3)", "音声 (MP3)", false, false}},
	{magic: "OggS", weak: true, kind: kind{"audio/ogg", "a sound (Ogg)", "音声 (Ogg)", false, false}},
	{magic: "fLaC", weak: true, kind: kind{"audio/flac", "a sound (FLAC)", "音声 (FLAC)", false, false}},

	{magic: "%PDF-", kind: kind{"application/pdf", "a PDF document", "PDF 文書", false, false}},
	{magic: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", kind: kind{"application/x-ole-storage", "an old Office document",
		"旧形式の Office 文書", false, false}},
	{magic: "PK\x03\x04", kind: zip}, {magic: "PK\x05\x06", kind: zip},
	{magic: "\x1f\x8b", kind: kind{"application/gzip", "a gzip file", "gzip ファイル", false, false}},
	{magic: "BZh", weak: true, kind: kind{"application/x-bzip2", "a bzip2 file", "bzip2 ファイル", false, false}},
	{magic: "\xfd7zXZ\x00", kind: kind{"application/x-xz", "an xz file", "xz ファイル", false, false}},
	{magic: "\x28\xb5\x2f\xfd", kind: kind{"application/zstd", "a Zstandard file", "Zstandard ファイル", false, false}},
	{magic: "7z\xbc\xaf\x27\x1c", kind: kind{"application/x-7z-compressed", "a 7-Zip archive", "7-Zip アーカイブ", false,
		false}},
	{magic: "Rar!\x1a\x07", kind: kind{"application/vnd.rar", "a RAR archive", "RAR アーカイブ", false, false}},
	{at: 257, magic: "ustar", weak: true, kind: kind{"application/x-tar", "a tar archive", "tar アーカイブ", false, false}},
	{magic: "SQLite format 3\x00", kind: kind{"application/vnd.sqlite3", "an SQLite database", "SQLite データベース", false,
		false}},
}

var (
	machO = kind{"application/x-mach-binary", "a program (Mach-O)", "プログラム (Mach-O)", true, false}
	gif   = kind{"image/gif", "a GIF image", "GIF 画像", false, true}
	tiff  = kind{"image/tiff", "a TIFF image", "TIFF 画像", false, false}
	zip   = kind{"application/zip", "a ZIP archive or Office document", "ZIP アーカイブまたは Office 文書", false, false}
	data  = kind{"application/octet-stream", "binary data", "バイナリデータ", false, false}
)

// sniff returns the kind of a file from its beginning, by its content alone. Everything that may be text gives the zero
// kind.
func sniff(head []byte) kind {
	if bom(head) != nil {
		return kind{}
	}
	nul := bytes.IndexByte(head, 0) >= 0
	for _, s := range signatures {
		if (nul || !s.weak) && len(head) > s.at && bytes.HasPrefix(head[s.at:], []byte(s.magic)) {
			return s.kind
		}
	}
	if nul || controls(head) > len(head)/100 {
		return data
	}
	return kind{}
}

// controls counts the bytes that no text holds. Escape is not among them: terminal output and ISO-2022-JP are text.
func controls(head []byte) (n int) {
	for _, b := range head {
		if b < ' ' && !strings.ContainsRune("\a\b\t\n\v\f\r\x1b", rune(b)) || b == 0x7f {
			n++
		}
	}
	return n
}

// program reports whether a system would run content of this beginning.
func program(content []byte) (kind, bool) {
	if bytes.HasPrefix(content, []byte("#!")) {
		return kind{mime: "text/x-shellscript", en: "a script (#!)", ja: "スクリプト (#!)"}, true
	}
	k := sniff(content[:min(len(content), sniffed)])
	return k, k.program
}
