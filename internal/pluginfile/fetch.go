package pluginfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/strictyaml"
)

// fetchTime bounds how long a plugin may take to arrive.
const fetchTime = 5 * time.Minute

// Fetch downloads a file of at most maxSize bytes from an https URL, or an http URL of this machine. proxy may be nil.
// Errors do not show the query of the URL, which may hold a secret.
func Fetch(ctx context.Context, u, proxy *url.URL, maxSize int64) ([]byte, error) {
	if err := checkSource(u); err != nil {
		return nil, err
	}
	wasm, err := download(ctx, proxy, u, maxSize)
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // without the address, whose query may be a secret
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", WithoutQuery(u.String()), err)
	}
	return wasm, nil
}

func download(ctx context.Context, proxy, from *url.URL, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	transport := outbound.NewTransport(proxy)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s: look at the address; what needs a login can be given as a file",
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

func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > 5 {
		return errors.New("it leads on to other addresses without end")
	}
	return checkSource(r.URL)
}

// checkSource refuses connections on which others can change what is downloaded.
func checkSource(u *url.URL) error {
	if address.IsConfidential(u) {
		return nil
	}
	return fmt.Errorf("%s://%s is not https: what comes from there could be anybody's", u.Scheme, u.Host)
}

// WithoutQuery returns a URL without the parts that may be secret, or any other text as it is.
func WithoutQuery(from string) string {
	if u, err := url.Parse(from); err == nil && u.Host != "" {
		u.RawQuery, u.Fragment, u.User = "", "", nil
		return u.String()
	}
	return from
}
