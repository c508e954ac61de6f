package wasmbin

import (
	"slices"
)

// Header starts every core module of version 1.
const Header = "\x00asm\x01\x00\x00\x00"

// Sections of a core module; core specification, section 5.5.2.
const (
	CustomSection    = 0
	TypeSection      = 1
	ImportSection    = 2
	FunctionSection  = 3
	TableSection     = 4
	MemorySection    = 5
	GlobalSection    = 6
	ExportSection    = 7
	StartSection     = 8
	ElementSection   = 9
	CodeSection      = 10
	DataSection      = 11
	DataCountSection = 12
	TagSection       = 13
)

// SectionOrder is the order of the sections that are not custom.
var SectionOrder = []byte{
	TypeSection, ImportSection, FunctionSection, TableSection, MemorySection, TagSection, GlobalSection, ExportSection,
	StartSection, ElementSection, DataCountSection, CodeSection, DataSection,
}

// FuncType begins the type of a function.
const FuncType = 0x60

// Value types; core specification, section 5.3.
const (
	I32       = 0x7f
	I64       = 0x7e
	F32       = 0x7d
	F64       = 0x7c
	V128      = 0x7b
	FuncRef   = 0x70
	ExternRef = 0x6f
)

// Section is one section of a module or component.
type Section struct {
	ID byte
	// Start and End are its place in the file, with ID and length.
	Start, End int
	// Name is the name of a custom section.
	Name string
	// Content reads the section's bytes, of a custom section those after its name.
	Content *Reader
}

// Sections calls visit with every section of a module or component whose header has been read.
func (r *Reader) Sections(visit func(Section)) {
	for !r.Done() {
		s := Section{Start: r.Pos}
		s.ID = r.Byte()
		s.Content = r.Section()
		s.End = r.Pos
		if s.ID == CustomSection {
			s.Name = s.Content.Name()
		}
		visit(s)
	}
}

// Module reads a core module: its header, and each section, with which it calls visit. It fails if a section that is
// not custom is unknown, repeated or out of order.
func (r *Reader) Module(visit func(Section)) {
	if header := r.Rest(); len(header) < len(Header) || string(header[:len(Header)]) != Header {
		r.Fail("it is not a core Wasm module of version 1")
	}
	r.Pos += len(Header)
	last := -1
	r.Sections(func(s Section) {
		if s.ID != CustomSection {
			rank := slices.Index(SectionOrder, s.ID)
			if rank <= last {
				r.FailAt(s.Start, "section %d is unknown, repeated or out of order", s.ID)
			}
			last = rank
		}
		visit(s)
	})
}

// Limits are the sizes of a memory, in pages, or of a table, in elements.
type Limits struct {
	Flags byte
	// Max is the largest size, if Flags has LimitsMax.
	Min, Max uint64
}

// Flags of Limits.
const (
	LimitsMax      = 1
	LimitsShared   = 2
	Limits64       = 4 // memories and tables with 64-bit addresses
	LimitsPageSize = 8 // the size of a page follows, which is read and dropped
)

// Limits reads the sizes of a memory or table.
func (r *Reader) Limits() Limits {
	l := Limits{Flags: r.Peek()}
	if l.Flags >= 2*LimitsPageSize {
		r.Fail("flags %#x of a size do not exist", l.Flags)
	}
	r.Pos++
	bits := 32
	if l.Flags&Limits64 != 0 {
		bits = 64
	}
	l.Min = r.unsigned(bits)
	if l.Flags&LimitsMax != 0 {
		l.Max = r.unsigned(bits)
	}
	if l.Flags&LimitsPageSize != 0 {
		r.Uint32()
	}
	return l
}
