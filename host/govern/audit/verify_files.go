package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Exists reports whether the directory is there.
func (d Dir) Exists(context.Context) (bool, error) {
	_, err := os.Stat(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Verify implements Reader.
func (d Dir) Verify(_ context.Context, expect *Expectation) (*Report, error) {
	v := &filesVerifier{verifier: newVerifier(expect), dir: string(d)}
	if err := v.prepare(); err != nil {
		return nil, fmt.Errorf("verify the audit log %s: %w", d, err)
	}
	for i, name := range v.names {
		if err := v.segment(name, i == len(v.names)-1); err != nil {
			return nil, fmt.Errorf("verify the audit log %s: %w", d, err)
		}
	}
	v.finish()
	return v.report, nil
}

// filesVerifier verifies a log in a directory.
type filesVerifier struct {
	*verifier
	dir   string
	names []string
}

// prepare reads the key, the head and the list of segments. The head is read first, so that records written meanwhile
// come after it.
func (v *filesVerifier) prepare() error {
	if v.expect.PublicKey == nil {
		text, err := os.ReadFile(filepath.Join(v.dir, publicName))
		if err != nil {
			return fmt.Errorf("%w: a copy of the key that is kept elsewhere does as well (hako audit verify --key)",
				err)
		}
		if v.expect.PublicKey, err = parsePublicKey(string(text)); err != nil {
			return err
		}
	}
	v.report.PublicKey = formatPublicKey(v.expect.PublicKey)
	v.readHead()
	var err error
	if v.names, err = segments(v.dir); err == nil && len(v.names) == 0 {
		err = errors.New("there are no records")
	}
	return err
}

// readHead reads the head, if the key is there to authenticate it.
func (v *filesVerifier) readHead() {
	v.name = headName
	k, err := openKey(v.dir, false)
	if err != nil {
		return // verified on another machine: only signatures are checked
	}
	if !k.public.Equal(v.expect.PublicKey) {
		v.problem("the log's key is not the one expected")
		return
	}
	v.report.EndChecked = true
	h, err := readHead(v.dir, k)
	for range 3 { // it may be overwritten at the moment
		if err == nil {
			break
		}
		h, err = readHead(v.dir, k)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.problem("it is missing")
	case err != nil:
		v.problem("%v", err)
	default:
		v.head = &h
	}
}

func (v *filesVerifier) segment(name string, last bool) error {
	file, err := os.Open(filepath.Join(v.dir, name))
	if err != nil {
		return err
	}
	defer file.Close()
	if v.report.Segments > 0 && number(name) != number(v.name)+1 {
		v.lines = 0
		v.problem("the segments after this one are missing, up to %s", name)
	}
	v.name, v.lines = name, 0
	v.report.Segments++
	reader := bufio.NewReaderSize(file, maxRecord+1024)
	for {
		line, err := reader.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			if !last && v.chain.last != TypeRotated {
				v.problem("the segment ends here, without the record that ends one: its end was cut off")
			}
			return nil
		case err == io.EOF:
			v.lines++
			if !last {
				v.problem("the last record is cut off")
			}
			return nil // it is being written, or the next start repairs it
		case errors.Is(err, bufio.ErrBufferFull):
			v.problem("a line is longer than any record")
			return nil
		case err != nil:
			return err
		}
		v.lines++
		v.line(line)
	}
}
