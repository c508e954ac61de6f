// Command grafana writes the dashboards beside it: one JSON file each, to be imported into Grafana 10.4 or later. "go
// generate" runs it.
//
// They are generated because the part that a person can judge, which is what a panel shows and why, is five lines of a
// hundred.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

//go:generate go run .

func main() {
	for _, d := range all() {
		text, err := d.encode()
		if err == nil {
			err = os.WriteFile(d.name+".json", text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func all() []*dashboard {
	return []*dashboard{overview(), plugins(), tools(), conversations(), sandbox()}
}

// encode returns the file.
func (d *dashboard) encode() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // expressions have < and >
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d.json())
	return text.Bytes(), err
}
