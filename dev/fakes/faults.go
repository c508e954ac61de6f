package fakes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/hako-run/hako/dev/fakes/fault"
)

// maxFault bounds what plans a failure, in bytes.
const maxFault = 1 << 20

// plan serves POST /_faults: it adds one failure to the plan of one fake, as docs/fakes.md describes.
func (f *Fakes) plan(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Fake                  string
		Method, Path          string
		Times, Status         int
		Delay                 string
		Header                map[string]string
		Body                  string
		After, Drop, Truncate bool
	}
	decoder := json.NewDecoder(io.LimitReader(r.Body, maxFault))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		refuse(w, err)
		return
	}
	planned := fault.Fault{
		Method: in.Method, Path: in.Path, Times: in.Times, Status: in.Status, Body: in.Body,
		After: in.After, Drop: in.Drop, Truncate: in.Truncate, Header: http.Header{},
	}
	for name, value := range in.Header {
		planned.Header.Set(name, value)
	}
	err := check(&planned)
	if in.Delay != "" && err == nil {
		planned.Delay, err = time.ParseDuration(in.Delay)
	}
	plan := f.plans[in.Fake]
	if plan == nil && err == nil {
		err = fmt.Errorf("fake must be one of %s", strings.Join(f.Names(), ", "))
	}
	if err != nil {
		refuse(w, err)
		return
	}
	plan.Add(planned)
	w.WriteHeader(http.StatusNoContent)
}

// forget serves DELETE /_faults: no failures are planned any more.
func (f *Fakes) forget(w http.ResponseWriter, _ *http.Request) {
	for _, plan := range f.plans {
		plan.Clear()
	}
	w.WriteHeader(http.StatusNoContent)
}

func check(f *fault.Fault) error {
	switch {
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("status %d is not from 200 to 599", f.Status)
	case f.Times < 0:
		return errors.New("times must not be negative; 0 is for ever")
	case f.Path != "" && !doublestar.ValidatePattern(f.Path):
		return fmt.Errorf("path %q is not a glob", f.Path)
	case f.Method != strings.ToUpper(f.Method):
		return fmt.Errorf("method %q is not in capitals", f.Method)
	}
	return nil
}

func refuse(w http.ResponseWriter, err error) {
	http.Error(w, fmt.Sprintf("this plans no failure: %v", err), http.StatusBadRequest)
}
