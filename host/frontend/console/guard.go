package console

import (
	"crypto/hmac"
	"errors"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
)

// contentPolicy is the Content-Security-Policy of all responses: only the page's own files, and no inline scripts.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// csrfHeader carries the session's CSRF token in every request that changes something.
const csrfHeader = "X-Hako-CSRF"

// guarded sets the headers of all responses, and refuses requests under other host names or from other sites.
func (c *Console) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		defer c.recovered(w, r)
		site := c.site.Load()
		switch {
		case !site.knows(r):
			writeFault(w, language(r), faultHost)
		case site.origins.Check(r) != nil, fromElsewhere(r):
			writeFault(w, language(r), faultOrigin)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// fromElsewhere reports whether a page of another site, or of another server on this machine, made the request to the
// API. The redirect from a provider is an exception.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && strings.HasPrefix(r.URL.Path, Path+"api/") &&
		!strings.HasPrefix(r.URL.Path, Path+"api/oidc/")
}

func (c *Console) recovered(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	c.logger.Error("internal error of the console", "path", r.URL.Path, "err", cause, "stack", string(debug.Stack()))
	writeFault(w, language(r), faultInternal)
}

// isChange reports whether the request may change something.
func isChange(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// checkType refuses requests of another type than kind. No kind is one that an HTML form could send: only a script of
// this page can set it.
func checkType(r *http.Request, kind string) error {
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != kind {
		return &fault{code: codeInvalid, text: said("the Content-Type must be %s", kind)}
	}
	return nil
}

// checkCSRF refuses a change without the CSRF token of the session with this secret.
func checkCSRF(r *http.Request, secret string) error {
	if !hmac.Equal([]byte(r.Header.Get(csrfHeader)), []byte(csrf(secret))) {
		return faultCSRF
	}
	return nil
}
