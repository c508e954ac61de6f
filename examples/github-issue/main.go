// Command github-issue shows how a plugin writes to a service with a secret that it never sees: the manifest asks for
// the operator's credential "github", and the host puts it on the requests.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hako-run/hako/pdk"
)

func init() { pdk.HandleTool("github_create_issue", create) }

func main() {}

type issue struct {
	Title  string   `json:"title"`
	Body   string   `json:"body,omitempty"`
	Labels []string `json:"labels,omitempty"`
}

// created is the part of GitHub's answer that is used, and the tool's structured content.
type created struct {
	Number int    `json:"number"`
	URL    string `json:"html_url"`
}

func create(ctx context.Context, in issue) (*pdk.Result, error) {
	var config struct {
		APIURL     string `json:"api_url"`
		Repository string `json:"repository"`
	}
	if err := pdk.Config(ctx, &config); err != nil {
		return nil, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	response, err := pdk.Fetch(ctx, &pdk.HTTPRequest{
		Method: "POST",
		URL:    strings.TrimRight(config.APIURL, "/") + "/repos/" + config.Repository + "/issues",
		Header: map[string]string{"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
		Body:   body,
	})
	if err != nil {
		return nil, fmt.Errorf("%w. The issue may have been created: look before you try again", err)
	}
	var answer struct {
		created
		Message string `json:"message"`
	}
	if err := json.Unmarshal(response.Body, &answer); err != nil {
		return nil, fmt.Errorf("GitHub's answer (HTTP %d) is not JSON. The issue may have been created: look before you try again", response.Status)
	}
	if response.Status != 201 {
		return nil, fmt.Errorf("GitHub created no issue in %s (HTTP %d: %s): %s", config.Repository, response.Status,
			answer.Message, remedy(response.Status))
	}
	return pdk.Text(fmt.Sprintf("Created issue #%d: %s", answer.Number, answer.URL)).WithStructured(answer.created), nil
}

// remedy returns what to do about a status of GitHub's (https://docs.github.com/rest/issues/issues#create-an-issue).
func remedy(status int) string {
	switch status {
	case 401:
		return "ask the operator to check the token of the credential github"
	case 403, 429:
		return "the token may not create issues here, or too many requests were made: try again later, " +
			"or ask the operator"
	case 404, 410:
		return "ask the operator whether the repository is right, has issues, and is covered by the token"
	case 422:
		return "check the title, which has at most 256 characters, and the labels"
	}
	return "try again later"
}
