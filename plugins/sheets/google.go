package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	defaultBaseURL = "https://sheets.googleapis.com"
	userAgent      = "hako-sheets/0.1 (+https://github.com/hako-run/hako)"
	// maxBody bounds an answer, in bytes. A range that is larger has to be read in parts.
	maxBody = 4 << 20
)

// spreadsheet is one spreadsheet at Google.
type spreadsheet struct {
	url string
}

var (
	documentURL = regexp.MustCompile(
		`^https://docs\.google\.com/(?:a/[^/]+/)?spreadsheets/(?:u/[0-9]+/)?d/([A-Za-z0-9_-]{20,100})(?:[/?#].*)?$`)
	documentID = regexp.MustCompile(`^[A-Za-z0-9_-]{20,100}$`)
)

// open returns the spreadsheet with an ID, or with the URL of its page.
func open(ctx context.Context, id string) (*spreadsheet, error) {
	id = strings.TrimSpace(id)
	if parts := documentURL.FindStringSubmatch(id); parts != nil {
		id = parts[1]
	}
	if !documentID.MatchString(id) {
		return nil, fail("spreadsheet_id %q is not the ID of a spreadsheet: it is the part after /d/ in https://docs.google.com/spreadsheets/d/ID/edit",
			"spreadsheet_id %q はスプレッドシートの ID ではありません。https://docs.google.com/spreadsheets/d/ID/edit の /d/ の後の部分を指定してください", id)
	}
	config := struct {
		BaseURL string `json:"base_url"`
	}{defaultBaseURL}
	if err := pdk.Config(ctx, &config); err != nil {
		return nil, err
	}
	return &spreadsheet{strings.TrimRight(config.BaseURL, "/") + "/v4/spreadsheets/" + id}, nil
}

// values is the URL of the values in an area, which is one segment of the path whatever characters it has.
func (s *spreadsheet) values(a area) string { return s.url + "/values/" + url.PathEscape(a.String()) }

// send sends a request and decodes the answer into the value that into points to.
func (s *spreadsheet) send(ctx context.Context, method, address string, query url.Values, body []byte, into any) error {
	response, err := s.fetch(ctx, method, address, query, body)
	if err != nil {
		return unreached(err)
	}
	if response.Status != 200 {
		return s.refused(ctx, response)
	}
	if err := json.Unmarshal(response.Body, into); err != nil {
		return &uncertain{fail("Google's answer is not of the expected shape (%v)", "Google の応答が想定した形ではありません (%v)",
			err)}
	}
	return nil
}

func (s *spreadsheet) fetch(ctx context.Context, method, address string, query url.Values,
	body []byte) (*pdk.HTTPResponse, error) {
	header := map[string]string{"Accept": "application/json", "User-Agent": userAgent}
	if body != nil {
		header["Content-Type"] = "application/json; charset=utf-8"
	}
	return pdk.Fetch(ctx, &pdk.HTTPRequest{Method: method, URL: address + "?" + query.Encode(), Header: header,
		Body: body, MaxBody: maxBody})
}

// uncertain is a failure after which Google may nevertheless have done what it was asked to.
type uncertain struct{ error }

func (u *uncertain) Unwrap() error { return u.error }

// again adds to an uncertain error what follows from it for a request that may be repeated.
func again(err error) error {
	var u *uncertain
	if !errors.As(err, &u) {
		return err
	}
	return fail("%w: try again, and if that does not help, with fewer rows or columns, such as 'Sheet1'!A1:Z500",
		"%w。もう一度試してください。続くようなら、'シート1'!A1:Z500 のように行や列を減らしてください", u.error)
}

// maybeWritten adds to an uncertain error what follows from it for rows that were to be appended.
func maybeWritten(err error) error {
	var u *uncertain
	if !errors.As(err, &u) {
		return err
	}
	return fail("%w. The rows may have been written: read the sheet with read_google_sheet before you try again, or they may be in it twice",
		"%w。行が書き込まれた可能性があります。二重に書かないよう、再試行の前に read_google_sheet でシートを確かめてください", u.error)
}

// unreached explains an error of the host: no answer, or not all of it.
func unreached(err error) error {
	own := &abi.Error{Code: abi.CodeNetwork, Message: err.Error()}
	errors.As(err, &own)
	switch own.Code {
	case abi.CodeNotGranted, abi.CodeInvalid, abi.CodeCredential:
		return err
	}
	return &uncertain{fail("no answer from Google Sheets (%s)", "Google スプレッドシートから応答がありません (%s)", own.Message)}
}
