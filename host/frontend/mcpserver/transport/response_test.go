package transport

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// deadlines records the write deadlines that a response sets.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(deadline time.Time) error {
	d.set = append(d.set, deadline)
	return nil
}

func TestWritesAreBoundedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := NewResponse(w, time.Minute)
		if _, err := r.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := http.NewResponseController(r).Flush(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		bound := time.Now().Add(writeTimeout)
		want := []time.Time{{}, bound, {}, bound, {}, bound}
		if !slices.Equal(w.set, want) {
			t.Errorf("deadlines %v, want %v: none at first, one for each write and flush, one for the end", w.set, want)
		}
	})
}

func TestWholeAnswersAreBoundedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := NewResponse(w, time.Minute)
		r.Header().Set("Content-Type", "text/event-stream")
		if err := r.Finish(http.StatusOK, []byte("data: x\n\n")); err != nil {
			t.Fatal(err)
		}
		r.Close()
		time.Sleep(time.Hour) // nothing comes after it
		want := []time.Time{{}, time.Now().Add(writeTimeout - time.Hour)}
		if !slices.Equal(w.set, want) || w.Body.String() != "data: x\n\n" || w.Header().Get("Content-Length") != "9" {
			t.Errorf("deadlines %v, want %v; %v %q", w.set, want, w.Header(), w.Body)
		}
	})
}
