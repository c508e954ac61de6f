package rewrite

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Custom sections with the line tables of DWARF, versions 2 to 5. The other sections are not needed to find a line.
const (
	lineSection       = ".debug_line"
	lineStringSection = ".debug_line_str"
	stringSection     = ".debug_str"
)

// Bounds of debug information, in bytes. What is larger is not read: lines help, and the time is the host's.
const (
	maxLineSection = 16 << 20
	maxLineHeader  = 256 << 10
	maxFileName    = 4 << 10
)

// FunctionLines returns where the functions with these indexes begin in the source, as FILE:LINE, in a module that
// Module has not rewritten, as far as its debug information has it. Addresses in it are offsets in the code section
// (WebAssembly tool conventions, DWARF). The texts are untrusted: any bytes, of any length. It allocates little besides
// the result, and its time is linear in the size of the module.
func FunctionLines(module []byte, functions []uint32) map[uint32]string {
	t := &lineTables{strings: map[string][]byte{}, found: map[uint32]string{}}
	ignoreErrors(func() {
		imported := 0
		newReader(module).Module(func(s wasmbin.Section) {
			switch s.ID {
			case wasmbin.CustomSection:
				switch s.Name {
				case lineSection, lineStringSection, stringSection:
					t.strings[s.Name] = s.Content.Rest()
				}
			case wasmbin.ImportSection:
				imported = importedFunctions(s.Content)
			case wasmbin.CodeSection:
				t.wanted = bodies(s.Content, imported, functions)
			}
		})
		lines := t.strings[lineSection]
		if len(lines) > maxLineSection {
			return
		}
		for r := newReader(lines); !r.Done() && len(t.wanted) > 0; {
			unit := newReader(r.Next(int(uint32At(r)))) // 64-bit DWARF is too long, and ends this
			ignoreErrors(func() { t.read(unit) })
		}
	})
	return t.found
}

// bodies returns the functions by the offset of their bodies in the code section.
func bodies(code *reader, imported int, functions []uint32) map[uint64]uint32 {
	wanted := map[uint32]bool{}
	for _, f := range functions {
		wanted[f] = true
	}
	offsets := map[uint64]uint32{}
	start := code.Pos
	for i := range int(code.Uint32()) {
		body := code.Section()
		if f := uint32(imported + i); wanted[f] {
			offsets[uint64(body.Pos-start)] = f
		}
	}
	return offsets
}

// importedFunctions returns the number of functions in an import section.
func importedFunctions(r *reader) (functions int) {
	for range r.Uint32() {
		r.Bytes()
		r.Bytes()
		switch r.Byte() {
		case kindFunction:
			r.Uint32()
			functions++
		case kindTable:
			r.Byte()
			r.Limits()
		case kindMemory:
			r.Limits()
		case kindGlobal:
			r.Next(2)
		}
	}
	return functions
}

// uint16At, uint32At and uint64At read numbers of a fixed size.
func uint16At(r *reader) uint16 { return binary.LittleEndian.Uint16(r.Next(2)) }
func uint32At(r *reader) uint32 { return binary.LittleEndian.Uint32(r.Next(4)) }
func uint64At(r *reader) uint64 { return binary.LittleEndian.Uint64(r.Next(8)) }

// cString reads the text up to a zero byte.
func cString(r *reader) []byte {
	n := bytes.IndexByte(r.Rest(), 0)
	if n < 0 {
		r.Fail("a text has no end")
	}
	return r.Next(n + 1)[:n]
}

// lineTables reads line tables (DWARF 5, section 6.2) until the lines of all wanted functions are found.
type lineTables struct {
	strings map[string][]byte
	wanted  map[uint64]uint32
	found   map[uint32]string
}

// Opcodes of line programs. The extended ones follow opExtended and a length.
const (
	opExtended        = 0
	opCopy            = 1
	opAdvanceAddress  = 2
	opAdvanceLine     = 3
	opSetFile         = 4
	opConstAddAddress = 8
	opFixedAdvance    = 9

	opExtendedEnd     = 1
	opExtendedAddress = 2
)

// read runs one line program.
func (t *lineTables) read(r *reader) {
	version := uint16At(r)
	if version < 2 || version > 5 {
		return
	}
	if version == 5 {
		r.Next(2) // the sizes of addresses and segments
	}
	size := int(uint32At(r))
	header := newReader(r.Next(size))
	step := uint64(header.Byte())
	if version >= 4 {
		header.Byte() // operations in an instruction: 1
	}
	header.Byte() // is_stmt
	base, lines := int64(int8(header.Byte())), header.Byte()
	operands := header.Next(max(int(header.Byte()), 1) - 1)
	first := len(operands) + 1 // the first special opcode
	if lines == 0 || size > maxLineHeader {
		return
	}
	var address uint64
	file, line := uint64(1), int64(1)
	dropped := false // the linker has left the functions out
	row := func() {
		function, ok := t.wanted[address]
		if !ok || line <= 0 || dropped {
			return
		}
		files := *header
		ignoreErrors(func() {
			if name := t.file(&files, version, file); name != "" {
				t.found[function] = name + ":" + strconv.FormatInt(line, 10)
			}
		})
		delete(t.wanted, address)
	}
	for !r.Done() {
		op := int(r.Byte())
		switch {
		case op >= first:
			address += uint64(op-first) / uint64(lines) * step
			line += base + int64((op-first)%int(lines))
			row()
		case op == opExtended:
			body := r.Section()
			switch body.Byte() {
			case opExtendedEnd:
				address, file, line, dropped = 0, 1, 1, false
			case opExtendedAddress:
				if len(body.Rest()) < 8 {
					address = uint64(uint32At(body))
				} else {
					address = uint64At(body)
				}
				dropped = address == 0
			}
		case op == opCopy:
			row()
		case op == opAdvanceAddress:
			address += r.Uint64() * step
		case op == opAdvanceLine:
			line += r.Signed(64)
		case op == opSetFile:
			file = r.Uint64()
		case op == opConstAddAddress:
			address += uint64(255-first) / uint64(lines) * step
		case op == opFixedAdvance:
			address += uint64(uint16At(r))
		default:
			for range operands[op-1] {
				r.Uint64()
			}
		}
	}
}

// Contents of the entries in a list of files, and their forms (DWARF 5, sections 6.2.4.1 and 7.5.6).
const (
	contentPath   = 1
	contentFolder = 2

	formData2         = 0x05
	formString        = 0x08
	formData1         = 0x0b
	formStringPointer = 0x0e
	formUint          = 0x0f
	formData16        = 0x1e
	formLineString    = 0x1f
)

// file returns the path of a file in the tables of a header, relative to the folder of the compilation if it is in it.
func (t *lineTables) file(r *reader, version uint16, number uint64) string {
	if version < 5 {
		return fileBefore5(r, number)
	}
	start := *r
	folders := &start
	t.entry(r, math.MaxUint64)
	name, in := t.entry(r, number)
	if name == "" {
		return ""
	}
	again := *folders
	home, _ := t.entry(folders, 0)
	folder, _ := t.entry(&again, in)
	return strings.TrimPrefix(join(folder, name), strings.TrimSuffix(home, "/")+"/")
}

// entry reads a list of folders or files of DWARF 5 up to an entry, and returns its name and the number of its folder.
func (t *lineTables) entry(r *reader, number uint64) (name string, folder uint64) {
	var text []byte
	type format struct{ content, form uint64 }
	var formats []format
	for range r.Byte() {
		formats = append(formats, format{r.Uint64(), r.Uint64()})
	}
	for i := range r.Uint64() {
		if len(formats) == 0 {
			return "", 0
		}
		text, folder = nil, 0
		for _, f := range formats {
			value, n := t.value(r, f.form)
			switch f.content {
			case contentPath:
				text = value
			case contentFolder:
				folder = n
			}
		}
		if i == number {
			return string(text), folder
		}
	}
	return "", 0
}

// value reads a value in one of the forms that a list of files may have.
func (t *lineTables) value(r *reader, form uint64) (text []byte, number uint64) {
	switch form {
	case formString:
		return cString(r), 0
	case formLineString:
		return stringAt(t.strings[lineStringSection], uint32At(r)), 0
	case formStringPointer:
		return stringAt(t.strings[stringSection], uint32At(r)), 0
	case formUint:
		return nil, r.Uint64()
	case formData1:
		return nil, uint64(r.Byte())
	case formData2:
		return nil, uint64(uint16At(r))
	case formData16:
		r.Next(16)
	default:
		r.Fail("form %#x is not read", form)
	}
	return nil, 0
}

func stringAt(section []byte, offset uint32) []byte {
	section = section[min(int(offset), len(section)):]
	return cString(newReader(section[:min(maxFileName, len(section))]))
}

// fileBefore5 reads the tables of DWARF 2 to 4, in which both numbers begin with 1, and folder 0 is that of the
// compilation.
func fileBefore5(r *reader, number uint64) string {
	folders := *r
	for len(cString(r)) > 0 {
	}
	for i := uint64(1); ; i++ {
		name := cString(r)
		if len(name) == 0 {
			return ""
		}
		in := r.Uint64()
		r.Uint64() // time
		r.Uint64() // length
		if i < number {
			continue
		}
		if in == 0 {
			return string(name)
		}
		for range in - 1 {
			if len(cString(&folders)) == 0 {
				return ""
			}
		}
		return join(string(cString(&folders)), string(name))
	}
}

func join(folder, name string) string {
	if folder == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimPrefix(folder, "./") + "/" + name
}
