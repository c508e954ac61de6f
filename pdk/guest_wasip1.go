package pdk

import (
	"context"
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/wire"
)

//go:wasmimport hako:core/1 take
func importTake(p unsafe.Pointer)

//go:wasmimport hako:core/1 respond
func importRespond(p unsafe.Pointer, length uint32)

//go:wasmimport hako:core/1 blob
func importBlob(p unsafe.Pointer, length uint32) int32

//go:wasmimport hako:core/1 log
func importLog(level int32, p unsafe.Pointer, length uint32)

//go:wasmimport hako:core/1 progress
func importProgress(progress, total float64, p unsafe.Pointer, length uint32)

//go:wasmimport hako:core/1 updated
func importUpdated(p unsafe.Pointer, length uint32)

//go:wasmimport hako:core/1 canceled
func importCanceled() int32

//go:wasmexport hako_abi_1
func exportMarker() {}

//go:wasmexport hako_call
func exportCall(length int32) int32 {
	reseed()
	data := take(uint32(length))
	request, err := wire.Request(data)
	if err != nil {
		respond(&abi.Response{Error: &abi.Error{Code: abi.CodeInvalid, Message: "request: " + err.Error()}})
		return 0
	}
	respond(Handle(context.Background(), request))
	return 0
}

func take(length uint32) []byte {
	data := make([]byte, length)
	importTake(unsafe.Pointer(unsafe.SliceData(data)))
	return data
}

func respond(response *abi.Response) {
	attachBlobs(response)
	data, err := wire.Response(response)
	if err != nil {
		panic(err) // the types of package abi always marshal
	}
	importRespond(unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data)))
}

// attachBlobs attaches the binary parts of a response and its long texts, which would cost more as JSON.
func attachBlobs(response *abi.Response) {
	attach := attacher{}.attach
	texts := 0
	attachContent := func(content *Content) {
		if content.Type == abi.Text && content.Data == nil && len(content.Text) >= longText && texts < maxTexts &&
			utf8.ValidString(content.Text) {
			content.Data = unsafe.Slice(unsafe.StringData(content.Text), len(content.Text))
			content.Text = ""
			texts++
		}
		content.Blob = attach(content.Data)
		if content.Resource != nil {
			content.Resource.Blob = attach(content.Resource.Data)
		}
	}
	response.Content = slices.Clone(response.Content) // handlers may return the same Result again
	for i := range response.Content {
		attachContent(&response.Content[i])
	}
	response.Messages = slices.Clone(response.Messages)
	for i := range response.Messages {
		attachContent(&response.Messages[i].Content)
	}
	for i := range response.Contents {
		response.Contents[i].Blob = attach(response.Contents[i].Data)
	}
	for i := range response.StructuredText {
		response.StructuredText[i].Blob = attach(response.StructuredText[i].Data)
	}
}

// longText is the length from which attaching a text is cheaper than encoding it, in bytes. maxTexts bounds how many
// are attached: the host accepts 256 blobs, which a response may need for its binary parts.
const (
	longText = 1 << 10
	maxTexts = 64
)

// attacher maps attached bytes to their index, so that the same bytes are copied once.
type attacher map[attachment]int

type attachment struct {
	start  *byte
	length int
}

func (a attacher) attach(data []byte) *int {
	if data == nil {
		return nil
	}
	key := attachment{unsafe.SliceData(data), len(data)}
	index, ok := a[key]
	if !ok {
		index = int(importBlob(unsafe.Pointer(key.start), uint32(key.length)))
		a[key] = index
	}
	return &index
}

func hostCanceled() bool { return importCanceled() != 0 }

func hostLog(level abi.LogLevel, line string) {
	importLog(int32(level), unsafe.Pointer(unsafe.StringData(line)), uint32(len(line)))
}

func hostProgress(_ context.Context, progress, total float64, message string) {
	importProgress(progress, total, unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
}

func hostUpdated(_ context.Context, uri string) {
	importUpdated(unsafe.Pointer(unsafe.StringData(uri)), uint32(len(uri)))
}
