package fault

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/hako-run/hako/internal/retry"
)

// serve answers r as f says. It panics with http.ErrAbortHandler to make the server close the connection.
func (f *Fault) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if retry.Wait(r.Context(), f.Delay) != nil {
		return
	}
	answer := f.answer(r, next)
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	body := answer.Body.Bytes()
	maps.Copy(w.Header(), answer.Header())
	maps.Copy(w.Header(), f.Header)
	if !f.Truncate {
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// answer is the response that the client sees: the server's own, or f's instead of it.
func (f *Fault) answer(r *http.Request, next http.Handler) *httptest.ResponseRecorder {
	replaced := f.Status != 0 || f.Body != "" || f.Drop
	served := httptest.NewRecorder()
	if !replaced || f.After {
		next.ServeHTTP(served, r)
	}
	if !replaced {
		return served
	}
	instead := httptest.NewRecorder()
	instead.Header().Set("Content-Type", "application/json")
	if f.Status != 0 {
		instead.Code = f.Status
	}
	_, _ = instead.Body.WriteString(f.Body)
	return instead
}
