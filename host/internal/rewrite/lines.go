package rewrite

import (
	"math"
	"strconv"
	"strings"
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
	sections := map[string][]byte{}
	var code []byte
	imported := uint64(0)
	r := &reader{data: module}
	r.bytes(len(magic))
	for !r.done() {
		id := r.byte()
		body := &reader{data: r.bytes(r.length())}
		switch id {
		case sectionCustom:
			switch name := string(body.bytes(body.length())); name {
			case lineSection, lineStringSection, stringSection:
				sections[name] = body.rest()
			}
		case sectionImport:
			imported = importedFunctions(body)
		case sectionCode:
			code = body.data
		}
	}
	if size := len(sections[lineSection]); size == 0 || size > maxLineSection {
		return nil
	}
	t := &lineTables{strings: sections, wanted: bodies(code, imported, functions), found: map[uint32]string{}}
	for r := (&reader{data: sections[lineSection]}); !r.done() && len(t.wanted) > 0; {
		t.read(&reader{data: r.bytes(int(r.uint32()))}) // 64-bit DWARF is too long, and ends this
	}
	return t.found
}

// bodies returns the functions by the offset of their bodies in the code section.
func bodies(code []byte, imported uint64, functions []uint32) map[uint64]uint32 {
	wanted := map[uint64]bool{}
	for _, f := range functions {
		wanted[uint64(f)] = true
	}
	offsets := map[uint64]uint32{}
	r := &reader{data: code}
	for i := range r.uint() {
		size := r.length()
		if offset := r.pos; wanted[imported+i] && r.err == nil {
			offsets[uint64(offset)] = uint32(imported + i)
		}
		if r.bytes(size); r.err != nil {
			break
		}
	}
	return offsets
}

// importedFunctions returns the number of functions in an import section.
func importedFunctions(r *reader) (functions uint64) {
	for range r.uint() {
		r.bytes(r.length())
		r.bytes(r.length())
		switch r.byte() {
		case kindFunction:
			r.uint()
			functions++
		case kindTable:
			r.byte()
			r.limits()
		case kindMemory:
			r.limits()
		case kindGlobal:
			r.bytes(2)
		default:
			return functions
		}
		if r.err != nil {
			break
		}
	}
	return functions
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
	version := r.uint16()
	if version < 2 || version > 5 {
		return
	}
	if version == 5 {
		r.bytes(2) // the sizes of addresses and segments
	}
	header := &reader{data: r.bytes(int(r.uint32()))}
	step := uint64(header.byte())
	if version >= 4 {
		header.byte() // operations in an instruction: 1
	}
	header.byte() // is_stmt
	base, lines := int64(int8(header.byte())), header.byte()
	operands := header.bytes(max(int(header.byte()), 1) - 1)
	first := len(operands) + 1 // the first special opcode
	if header.err != nil || lines == 0 || len(header.data) > maxLineHeader {
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
		if name := t.file(&files, version, file); name != "" {
			t.found[function] = name + ":" + strconv.FormatInt(line, 10)
		}
		delete(t.wanted, address)
	}
	for !r.done() {
		op := int(r.byte())
		switch {
		case op >= first:
			address += uint64(op-first) / uint64(lines) * step
			line += base + int64((op-first)%int(lines))
			row()
		case op == opExtended:
			body := &reader{data: r.bytes(r.length())}
			switch body.byte() {
			case opExtendedEnd:
				address, file, line, dropped = 0, 1, 1, false
			case opExtendedAddress:
				if address = body.uint64(); len(body.data) < 9 {
					address = uint64((&reader{data: body.data[1:]}).uint32())
				}
				dropped = address == 0
			}
		case op == opCopy:
			row()
		case op == opAdvanceAddress:
			address += r.uint() * step
		case op == opAdvanceLine:
			line += r.int()
		case op == opSetFile:
			file = r.uint()
		case op == opConstAddAddress:
			address += uint64(255-first) / uint64(lines) * step
		case op == opFixedAdvance:
			address += uint64(r.uint16())
		default:
			for range operands[op-1] {
				r.uint()
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
	for range r.byte() {
		formats = append(formats, format{r.uint(), r.uint()})
	}
	for i := range r.uint() {
		if r.err != nil || len(formats) == 0 {
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
		return r.cString(), 0
	case formLineString:
		return stringAt(t.strings[lineStringSection], r.uint32()), 0
	case formStringPointer:
		return stringAt(t.strings[stringSection], r.uint32()), 0
	case formUint:
		return nil, r.uint()
	case formData1:
		return nil, uint64(r.byte())
	case formData2:
		return nil, uint64(r.uint16())
	case formData16:
		r.bytes(16)
	default:
		r.fail(errNumber)
	}
	return nil, 0
}

func stringAt(section []byte, offset uint32) []byte {
	section = section[min(int(offset), len(section)):]
	return (&reader{data: section[:min(maxFileName, len(section))]}).cString()
}

// fileBefore5 reads the tables of DWARF 2 to 4, in which both numbers begin with 1, and folder 0 is that of the
// compilation.
func fileBefore5(r *reader, number uint64) string {
	folders := r.pos
	for len(r.cString()) > 0 {
	}
	for i := uint64(1); ; i++ {
		name := r.cString()
		in := r.uint()
		r.uint() // time
		r.uint() // length
		if len(name) == 0 || r.err != nil {
			return ""
		}
		if i < number {
			continue
		}
		if in == 0 {
			return string(name)
		}
		r := &reader{data: r.data, pos: folders}
		for range in - 1 {
			if len(r.cString()) == 0 {
				return ""
			}
		}
		return join(string(r.cString()), string(name))
	}
}

func join(folder, name string) string {
	if folder == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimPrefix(folder, "./") + "/" + name
}
