package credential

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hako-run/hako/internal/httpserver"
)

// callbackPath is the default path of redirects.
const callbackPath = "/callback"

// Connect connects a credential with consent in a browser on this machine. It listens on a loopback address for the
// redirect (RFC 8252, section 7.3), calls open with the URL to visit, waits for the redirect, and stores the
// connection. It refuses redirects with another state and continues to wait. Errors are those of Consent, Exchange and
// ctx, that the operator declined, or that the address of redirectUrl is not available.
func (b *Broker) Connect(ctx context.Context, tenant, name string, open func(url string)) (*Status, error) {
	c, err := b.connection(tenant, name)
	if err != nil {
		return nil, err
	}
	listener, redirect, err := listen(ctx, c.spec.RedirectURL)
	if err != nil {
		return nil, fmt.Errorf("listen for the redirect: %w", err)
	}
	defer listener.Close()
	consent, err := b.Consent(ctx, tenant, name, redirect.String())
	if err != nil {
		return nil, err
	}
	code := make(chan callback, 1)
	handler := httpserver.LocalOnly(consent.handler(redirect.Path, code), "Open the link that hako has printed again.")
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(listener) }() // returns after Shutdown
	defer shutdown(ctx, server)
	open(consent.URL)
	select {
	case answer := <-code:
		if answer.err != nil {
			return nil, answer.err
		}
		return consent.redeemCode(ctx, answer.code)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// shutdown waits until the final page is delivered.
func shutdown(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = server.Shutdown(ctx)
}

// listen listens at the configured address, or at a free port of 127.0.0.1.
func listen(ctx context.Context, configured string) (net.Listener, *url.URL, error) {
	u, err := url.Parse(cmp.Or(configured, "http://127.0.0.1:0"+callbackPath))
	if err != nil {
		return nil, nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")))
	if err != nil {
		return nil, nil, err
	}
	if configured == "" {
		u.Host = listener.Addr().String()
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return listener, u, nil
}

// callback is the result of a redirect: a code or an error.
type callback struct {
	code string
	err  error
}

// handler serves the redirect to path.
func (c *Consent) handler(path string, out chan<- callback) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path || r.Method != http.MethodGet {
			http.NotFound(w, r) // a favicon, or an unrelated request
			return
		}
		query := r.URL.Query()
		if err := c.claim(query); err != nil {
			page(w, http.StatusBadRequest, "This link is not valid, or was used already.", "このリンクは無効か、すでに使用されています。")
			return
		}
		answer := callback{code: query.Get("code")}
		if answer.code == "" {
			answer.err = fmt.Errorf("the consent was not given: %s", cmp.Or(clean(query.Get("error"), nil),
				"the redirect has no code"))
			page(w, http.StatusOK, "No consent was given. You can close this page.", "許可されませんでした。このページを閉じてください。")
		} else {
			page(w, http.StatusOK, "Thank you. You can close this page and go back to the terminal.",
				"ありがとうございます。このページを閉じて、ターミナルに戻ってください。")
		}
		out <- answer
	})
}

// page writes a page with a text in English and Japanese. It contains nothing of the request.
func page(w http.ResponseWriter, status int, english, japanese string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Connection", "close")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<!doctype html><title>hako</title><p>"+english+"</p><p lang=ja>"+japanese+"</p>\n")
}
