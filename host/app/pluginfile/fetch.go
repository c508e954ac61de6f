package pluginfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/strictyaml"
)

// fetchTime bounds how long a plugin may take to arrive.
const fetchTime = 5 * time.Minute

// fetch downloads a file of at most maxSize bytes from an https URL, or an http URL of this machine. proxy may be nil.
// Errors do not show the query of the URL, which may hold a secret.
func fetch(ctx context.Context, u, proxy *url.URL, maxSize int64) ([]byte, error) {
	return download(ctx, outbound.NewTransport(proxy), u, checkSource, maxSize)
}

// fetchPublic is fetch for people who may not reach the operator's network through hako: it accepts only https URLs and
// connects only to public addresses, also after redirects. The exception are servers that the operator has named, in
// the form of outbound.HostPort.
func fetchPublic(ctx context.Context, u, proxy *url.URL, maxSize int64, named ...string) ([]byte, error) {
	check := func(u *url.URL) error {
		if slices.Contains(named, outbound.HostPort(u)) {
			return checkSource(u)
		}
		return checkPublicSource(u)
	}
	wasm, err := download(ctx, outbound.NewPublicTransport(proxy, named...), u, check, maxSize)
	var refused *outbound.RefusedError
	if errors.As(err, &refused) {
		err = fmt.Errorf(
			"%s: %s is at %s address, and only public addresses are reached from here: download it yourself and "+
				"give the file, or use hako plugin add at a terminal", withoutQuery(u.String()),
			refused.Host, refused.Kind)
	}
	return wasm, err
}

// download returns what u answers. check refuses the URL or that of a redirect.
func download(ctx context.Context, transport *http.Transport, u *url.URL, check func(*url.URL) error,
	maxSize int64) ([]byte, error) {
	defer transport.CloseIdleConnections()
	if err := check(u); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	wasm, err := request(ctx, transport, u, check, maxSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", withoutQuery(u.String()), cause.WithoutURL(err)) // its query may be a secret
	}
	return wasm, nil
}

func request(ctx context.Context, transport *http.Transport, from *url.URL, check func(*url.URL) error,
	most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return errors.New("it redirects too many times")
		}
		return check(r.URL)
	}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s: check the address; download a file that needs a login and give the file",
			response.Status)
	}
	wasm, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err == nil && int64(len(wasm)) > most {
		err = fmt.Errorf(
			"it is larger than %s: raise maxPluginSize in %s if that is right",
			strictyaml.FormatSize(most),
			config.FileName,
		)
	}
	return wasm, err
}

// checkSource refuses connections on which others can change what is downloaded.
func checkSource(u *url.URL) error {
	if address.IsConfidential(u) {
		return nil
	}
	return fmt.Errorf("%s://%s is not https: its content could be forged", u.Scheme, u.Host)
}

// checkPublicSource is checkSource without the exception for this machine.
func checkPublicSource(u *url.URL) error {
	if u.Scheme == "https" {
		return nil
	}
	return fmt.Errorf("%s://%s is not https: its content could be forged", u.Scheme, u.Host)
}

// withoutQuery returns a URL without the parts that may be secret, or any other text as it is.
func withoutQuery(from string) string {
	if u, err := url.Parse(from); err == nil && u.Hostname() != "" {
		u.RawQuery, u.Fragment, u.User = "", "", nil
		return u.String()
	}
	return from
}
