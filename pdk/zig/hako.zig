//! Write hako plugins in Zig 0.17, over ABI 1. The root file registers the handlers:
//!
//!     const hako = @import("hako");
//!     pub const panic = hako.panic;
//!     pub const handlers: hako.Handlers = .{ .tools = &.{hako.tool("greet", greet)} };
//!     comptime { hako.exportPlugin(handlers); }
//!
//!     fn greet(call: *hako.Call, input: struct { name: []const u8 }) !void {
//!         try call.text("Hello, {s}!", .{input.name});
//!     }
//!
//! An error that a handler returns is a failure of the tool; call.fail gives it a text on which a model can act. All memory
//! of call.arena is freed after the call. Text that is not UTF-8 gets U+FFFD.

const std = @import("std");
const builtin = @import("builtin");
const Value = std.json.Value;
const Writer = std.Io.Writer;

const is_guest = builtin.target.cpu.arch.isWasm();

const core = struct {
    extern "hako:core/1" fn take(p: [*]u8) void;
    extern "hako:core/1" fn respond(p: [*]const u8, length: usize) void;
    extern "hako:core/1" fn blob(p: [*]const u8, length: usize) u32;
    extern "hako:core/1" fn log(level: i32, p: [*]const u8, length: usize) void;
    extern "hako:core/1" fn progress(progress: f64, total: f64, p: [*]const u8, length: usize) void;
    extern "hako:core/1" fn updated(p: [*]const u8, length: usize) void;
    extern "hako:core/1" fn canceled() i32;
};

const web = struct {
    extern "hako:http/1" fn request(head: [*]const u8, head_length: usize, body: [*]const u8, body_length: usize) usize;
    extern "hako:http/1" fn start(head: [*]const u8, head_length: usize, body: [*]const u8, body_length: usize) i32;
    extern "hako:http/1" fn wait(handle: i32) usize;
    extern "hako:http/1" fn read(handle: i32, p: [*]u8, capacity: usize) i32;
    extern "hako:http/1" fn close(handle: i32) void;
};

const database = struct {
    extern "hako:sql/1" fn query(head: [*]const u8, head_length: usize, blobs: [*]const u8, blobs_length: usize) usize;
    extern "hako:sql/1" fn exec(head: [*]const u8, head_length: usize, blobs: [*]const u8, blobs_length: usize) usize;
    extern "hako:sql/1" fn blobs() usize;
    extern "hako:sql/1" fn begin(write: i32) usize;
    extern "hako:sql/1" fn commit() usize;
    extern "hako:sql/1" fn rollback() usize;
};

/// The error that a handler returns after it has set code and message in the call.
pub const Failed = error{Failed};

/// One request and its response.
pub const Call = struct {
    arena: std.mem.Allocator,
    request: Value,
    /// Content blocks of a tool, contents of a resource, messages of a prompt or values of a completion.
    items: Writer.Allocating,
    structured_json: ?[]const u8 = null,
    description: []const u8 = "",
    code: []const u8 = "",
    message: []const u8 = "",

    /// The plugin's configuration, with defaults filled in.
    pub fn config(call: *Call, T: type) !T {
        return std.json.parseFromValueLeaky(T, call.arena, get(call.request, "config"), .{ .ignore_unknown_fields = true });
    }

    /// The caller's language, such as "ja", or "" if it is not known.
    pub fn locale(call: *Call) []const u8 {
        return string(get(call.request, "locale"));
    }

    /// The guest's paths by the host's, for plugins that ask for roots.
    pub fn roots(call: *Call) Value {
        return get(call.request, "roots");
    }

    pub fn format(call: *Call, comptime template: []const u8, args: anytype) ![]u8 {
        return std.fmt.allocPrint(call.arena, template, args);
    }

    /// Adds an item as docs/abi.md describes it.
    pub fn add(call: *Call, item: anytype) !void {
        if (call.items.written().len > 0) try call.items.writer.writeByte(',');
        try std.json.Stringify.value(item, .{ .emit_null_optional_fields = false }, &call.items.writer);
    }

    pub fn text(call: *Call, comptime template: []const u8, args: anytype) !void {
        try call.add(.{ .type = "text", .text = try call.utf8(try call.format(template, args)) });
    }

    pub fn image(call: *Call, mime_type: []const u8, data: []const u8) !void {
        try call.add(.{ .type = "image", .mimeType = mime_type, .blob = attach(data) });
    }

    pub fn audio(call: *Call, mime_type: []const u8, data: []const u8) !void {
        try call.add(.{ .type = "audio", .mimeType = mime_type, .blob = attach(data) });
    }

    pub fn link(call: *Call, uri: []const u8, name: []const u8, mime_type: []const u8) !void {
        try call.add(.{ .type = "resource_link", .uri = uri, .name = name, .mimeType = mime_type });
    }

    /// A resource as a content block: .{ .uri = ..., .mimeType = ..., .text = ... }.
    pub fn resource(call: *Call, contents: anytype) !void {
        try call.add(.{ .type = "resource", .resource = contents });
    }

    /// Sets the structured content.
    pub fn structured(call: *Call, value: anytype) !void {
        call.structured_json = try std.json.Stringify.valueAlloc(call.arena, value, .{});
    }

    pub fn contentsText(call: *Call, uri: []const u8, mime_type: []const u8, value: []const u8) !void {
        try call.add(.{ .uri = uri, .mimeType = mime_type, .text = try call.utf8(value) });
    }

    pub fn contentsBytes(call: *Call, uri: []const u8, mime_type: []const u8, data: []const u8) !void {
        try call.add(.{ .uri = uri, .mimeType = mime_type, .blob = attach(data) });
    }

    /// Adds a message of a prompt; the role is "user" or "assistant".
    pub fn say(call: *Call, role: []const u8, value: []const u8) !void {
        try call.add(.{ .role = role, .content = .{ .type = "text", .text = try call.utf8(value) } });
    }

    /// Makes the call a failure, with a text on which a model can act: return call.fail("...", .{}).
    pub fn fail(call: *Call, comptime template: []const u8, args: anytype) (Failed || std.mem.Allocator.Error) {
        call.message = try call.format(template, args);
        return error.Failed;
    }

    /// Makes it one with a code, such as "not-found".
    pub fn failWith(call: *Call, code: []const u8, message: []const u8) Failed {
        call.code = code;
        call.message = message;
        return error.Failed;
    }

    /// The text with U+FFFD for what is not UTF-8.
    pub fn utf8(call: *Call, bytes: []const u8) ![]const u8 {
        return if (std.unicode.utf8ValidateSlice(bytes)) bytes else call.format("{f}", .{std.unicode.fmtUtf8(bytes)});
    }

    fn is(call: *Call, method: []const u8) bool {
        return std.mem.eql(u8, string(get(call.request, "method")), method);
    }

    fn notFound(call: *Call, kind: []const u8, name: []const u8) !void {
        return call.failWith("not-found", try call.format("this plugin has no handler for the {s} {s}", .{ kind, name }));
    }
};

/// A member of an object, or null.
pub fn get(value: Value, key: []const u8) Value {
    return if (value == .object) value.object.get(key) orelse .null else .null;
}

/// The text of a string, or "".
pub fn string(value: Value) []const u8 {
    return if (value == .string) value.string else "";
}

pub const Tool = struct { name: []const u8, handle: *const fn (*Call, Value) anyerror!void };
pub const Resource = struct { uri: []const u8, handle: *const fn (*Call, []const u8, Value) anyerror!void };
pub const Completer = struct { of: []const u8, argument: []const u8, handle: *const fn (*Call, []const u8, Value) anyerror!void };

/// The handlers of a plugin, by the names in its manifest. Those of templates get the values of the variables, those of prompts
/// the arguments.
pub const Handlers = struct {
    tools: []const Tool = &.{},
    resources: []const Resource = &.{},
    templates: []const Resource = &.{},
    prompts: []const Tool = &.{},
    completers: []const Completer = &.{},
};

/// A tool, whose arguments are decoded into the type of the second parameter of handle.
pub fn tool(name: []const u8, comptime handle: anytype) Tool {
    const Input = @FieldType(std.meta.ArgsTuple(@TypeOf(handle)), "1");
    const Decoder = struct {
        fn decode(call: *Call, arguments: Value) anyerror!void {
            const options: std.json.ParseOptions = .{ .ignore_unknown_fields = true };
            const input = std.json.parseFromValueLeaky(Input, call.arena, arguments, options) catch |err|
                return call.failWith("invalid", try call.format("the arguments do not fit: {s}", .{@errorName(err)}));
            return handle(call, input);
        }
    };
    return .{ .name = name, .handle = Decoder.decode };
}

/// Exports the entry points of a plugin with these handlers. Natively, where tests run, there are none.
pub fn exportPlugin(comptime handlers: Handlers) void {
    const Entry = struct {
        var arena: std.heap.ArenaAllocator = .init(std.heap.wasm_allocator);

        fn marker() callconv(.c) void {}

        fn serve(length: usize) callconv(.c) i32 {
            _ = arena.reset(.free_all);
            const request = arena.allocator().alloc(u8, length) catch return 1;
            core.take(request.ptr);
            const response = respond(arena.allocator(), handlers, request) catch return 2;
            core.respond(response.ptr, response.len);
            return 0;
        }
    };
    if (is_guest) {
        @export(&Entry.marker, .{ .name = "hako_abi_1" });
        @export(&Entry.serve, .{ .name = "hako_call" });
    }
}

/// Calls a tool in a test, natively, and returns the response.
pub fn testTool(arena: std.mem.Allocator, handlers: Handlers, name: []const u8, arguments: anytype, locale: []const u8) !Value {
    const request = try std.json.Stringify.valueAlloc(arena, .{
        .method = "tools/call",
        .name = name,
        .arguments = arguments,
        .locale = locale,
    }, .{});
    return std.json.parseFromSliceLeaky(Value, arena, try respond(arena, handlers, request), .{});
}

/// The tool of the request being served, for panic.
var serving: []const u8 = "the plugin";

/// Responds with the message of a panic, before the module traps: pub const panic = hako.panic, in the root file.
pub const panic = std.debug.FullPanic(reportPanic);

fn reportPanic(message: []const u8, address: ?usize) noreturn {
    if (!is_guest) std.debug.defaultPanic(message, address);
    var memory: [4096]u8 = undefined;
    var out: Writer = .fixed(&memory);
    log(.err, message);
    out.print("{s} stopped unexpectedly: {s}", .{ serving, message[0..@min(message.len, 1000)] }) catch {};
    const text = out.buffered();
    var response: [9000]u8 = undefined;
    var json: Writer = .fixed(&response);
    std.json.Stringify.value(.{ .isError = true, .content = .{.{ .type = "text", .text = text }} }, .{}, &json) catch {};
    core.respond(json.buffered().ptr, json.buffered().len);
    @trap();
}

fn respond(arena: std.mem.Allocator, handlers: Handlers, request: []const u8) ![]const u8 {
    var call: Call = .{ .arena = arena, .request = .null, .items = .init(arena) };
    call.request = std.json.parseFromSliceLeaky(Value, arena, request, .{}) catch |err| {
        call.code = "invalid";
        call.message = try call.format("request: {s}", .{@errorName(err)});
        return failure(&call);
    };
    serving = string(get(call.request, "name"));
    if (call.is("hako/handlers")) return handlerNames(arena, handlers);
    serve(&call, handlers) catch |err| {
        if (err != error.Failed) call.message = try call.format("{s}", .{@errorName(err)});
        return failure(&call);
    };
    return success(&call);
}

fn serve(call: *Call, handlers: Handlers) anyerror!void {
    const name = string(get(call.request, "name"));
    const uri = string(get(call.request, "uri"));
    if (call.is("tools/call")) {
        for (handlers.tools) |t| if (std.mem.eql(u8, t.name, name)) return t.handle(call, get(call.request, "arguments"));
        return call.notFound("tool", name);
    }
    if (call.is("prompts/get")) {
        for (handlers.prompts) |p| if (std.mem.eql(u8, p.name, name)) return p.handle(call, get(call.request, "arguments"));
        return call.notFound("prompt", name);
    }
    if (call.is("resources/read")) {
        const template = string(get(call.request, "template"));
        for (handlers.templates) |t| if (std.mem.eql(u8, t.uri, template)) return t.handle(call, uri, get(call.request, "variables"));
        for (handlers.resources) |r| if (std.mem.eql(u8, r.uri, uri)) return r.handle(call, uri, .null);
        return call.notFound("resource", uri);
    }
    if (call.is("completion/complete")) {
        const ref = get(call.request, "ref");
        const argument = get(call.request, "argument");
        const of = if (get(ref, "name") == .string) string(get(ref, "name")) else string(get(ref, "uri"));
        for (handlers.completers) |c| {
            if (std.mem.eql(u8, c.of, of) and std.mem.eql(u8, c.argument, string(get(argument, "name"))))
                return c.handle(call, string(get(argument, "value")), get(argument, "resolved"));
        }
        return;
    }
    return call.notFound("method", string(get(call.request, "method")));
}

fn failure(call: *Call) ![]const u8 {
    const message = try call.utf8(call.message);
    if (!call.is("tools/call") or std.mem.eql(u8, call.code, "not-found")) {
        const code = if (call.code.len > 0) call.code else "internal";
        return std.json.Stringify.valueAlloc(call.arena, .{ .@"error" = .{ .code = code, .message = message } }, .{});
    }
    const text = if (call.code.len > 0) try call.format("{s}: {s}", .{ call.code, message }) else message;
    return std.json.Stringify.valueAlloc(call.arena, .{ .isError = true, .content = .{.{ .type = "text", .text = text }} }, .{});
}

fn success(call: *Call) ![]const u8 {
    const items = call.items.written();
    if (call.is("resources/read")) return call.format("{{\"contents\":[{s}]}}", .{items});
    if (call.is("completion/complete")) return call.format("{{\"completion\":{{\"values\":[{s}]}}}}", .{items});
    if (call.is("prompts/get")) {
        const description = try std.json.Stringify.valueAlloc(call.arena, try call.utf8(call.description), .{});
        return call.format("{{\"messages\":[{s}],\"description\":{s}}}", .{ items, description });
    }
    const structured = call.structured_json orelse return call.format("{{\"content\":[{s}]}}", .{items});
    return call.format("{{\"content\":[{s}],\"structuredContent\":{s}}}", .{ items, structured });
}

fn handlerNames(arena: std.mem.Allocator, handlers: Handlers) ![]const u8 {
    return std.json.Stringify.valueAlloc(arena, .{ .handlers = .{
        .tools = try names(arena, handlers.tools, "name"),
        .resources = try names(arena, handlers.resources, "uri"),
        .resourceTemplates = try names(arena, handlers.templates, "uri"),
        .prompts = try names(arena, handlers.prompts, "name"),
    } }, .{});
}

fn names(arena: std.mem.Allocator, table: anytype, comptime field: []const u8) ![]const []const u8 {
    const list = try arena.alloc([]const u8, table.len);
    for (table, list) |entry, *name| name.* = @field(entry, field);
    return list;
}

fn attach(data: []const u8) u32 {
    return if (is_guest) core.blob(data.ptr, data.len) else 0;
}

pub const Level = enum(i32) { debug = -4, info = 0, warn = 4, err = 8 };

/// Writes to the host's log.
pub fn log(level: Level, message: []const u8) void {
    if (is_guest) core.log(@intFromEnum(level), message.ptr, message.len);
}

/// Reports progress to the caller; a total of 0 means unknown.
pub fn progress(done: f64, total: f64, message: []const u8) void {
    if (is_guest) core.progress(done, total, message.ptr, message.len);
}

/// Says that a resource has changed.
pub fn resourceUpdated(uri: []const u8) void {
    if (is_guest) core.updated(uri.ptr, uri.len);
}

/// Reports whether the caller has gone or the time is up.
pub fn isCanceled() bool {
    return is_guest and core.canceled() != 0;
}

/// Bytes of real randomness; a generator is best seeded with it in each call.
pub fn random(T: type) T {
    var value: T = undefined;
    const bytes = std.mem.asBytes(&value);
    _ = std.os.wasi.random_get(bytes.ptr, bytes.len);
    return value;
}

fn take(call: *Call, length: usize) ![]u8 {
    const data = try call.arena.alloc(u8, length);
    core.take(data.ptr);
    return data;
}

fn takeValue(call: *Call, length: usize) !Value {
    return std.json.parseFromSliceLeaky(Value, call.arena, try take(call, length), .{});
}

/// Makes an error of the host the failure of the call.
fn hostError(call: *Call, value: Value) anyerror {
    return call.failWith(string(get(value, "code")), string(get(value, "message")));
}

/// HTTP, permission http.
pub const Request = struct {
    method: []const u8 = "GET",
    url: []const u8,
    /// JSON, such as .{ .Accept = .{"text/plain"} }.
    headers: Value = .{ .object = .empty },
    body: []const u8 = "",

    /// Sends the request and reads the response, of any status.
    pub fn send(request: Request, call: *Call) !Response {
        const head = try request.encode(call);
        return receive(call, web.request(head.ptr, head.len, request.body.ptr, request.body.len));
    }

    /// Sends the request without waiting: wait gives the response. A call has at most 8 under way.
    pub fn start(request: Request, call: *Call) !Pending {
        const head = try request.encode(call);
        const handle = web.start(head.ptr, head.len, request.body.ptr, request.body.len);
        if (handle < 0) return hostError(call, try takeValue(call, @intCast(-handle)));
        return .{ .handle = handle };
    }

    fn encode(request: Request, call: *Call) ![]u8 {
        return std.json.Stringify.valueAlloc(call.arena, .{
            .method = request.method,
            .url = request.url,
            .headers = request.headers,
        }, .{});
    }
};

pub const Pending = struct {
    handle: i32,

    pub fn wait(pending: Pending, call: *Call) !Response {
        return receive(call, web.wait(pending.handle));
    }
};

pub const Response = struct {
    status: i64,
    /// With "headers", "url" and "credential".
    head: Value,
    body: []const u8,

    /// The first value of a header, or "".
    pub fn header(response: Response, name: []const u8) []const u8 {
        const values = get(get(response.head, "headers"), name);
        return if (values == .array and values.array.items.len > 0) string(values.array.items[0]) else "";
    }
};

fn receive(call: *Call, length: usize) !Response {
    const head = try takeValue(call, length);
    if (get(head, "error") == .object) return hostError(call, get(head, "error"));
    const handle: i32 = @intCast(get(head, "handle").integer);
    defer web.close(handle);
    var body: Writer.Allocating = .init(call.arena);
    const chunk = try call.arena.alloc(u8, 64 << 10);
    while (true) {
        const n = web.read(handle, chunk.ptr, chunk.len);
        if (n == 0) break;
        if (n < 0) return hostError(call, try takeValue(call, @intCast(-n)));
        try body.writer.writeAll(chunk[0..@intCast(n)]);
    }
    return .{ .status = get(head, "status").integer, .head = head, .body = body.written() };
}

/// A value of SQLite. NaN is none.
pub const SqlValue = union(enum) {
    none,
    integer: i64,
    real: f64,
    text: []const u8,
    blob: []const u8,

    /// Writes what stands for the value in a statement: a real has an exponent, a blob is its length.
    pub fn jsonStringify(value: SqlValue, json: *std.json.Stringify) !void {
        switch (value) {
            .none => try json.write(null),
            .integer => |n| try json.write(n),
            .real => |f| if (std.math.isInf(f)) try json.print("{s}9e999", .{if (f < 0) "-" else ""}) else {
                try json.print("{e}", .{f});
            },
            .text => |t| try json.write(t),
            .blob => |b| try json.write(.{ .blob = b.len }),
        }
    }
};

/// The plugin's database, permission sql. An error of the host becomes the failure of the call.
pub const sql = struct {
    pub const Rows = struct { columns: []const []const u8, rows: []const []const SqlValue };
    pub const Changes = struct { changes: i64, last_insert_id: i64 };

    /// Runs a statement and returns its rows. There is a value for each parameter: &.{ .{ .text = "Aki" }, .{ .integer = 7 } }.
    pub fn query(call: *Call, statement: []const u8, args: []const SqlValue) !Rows {
        const head, const blobs = try encode(call, statement, args);
        const found = try answer(call, database.query(head.ptr, head.len, blobs.ptr, blobs.len));
        const columns = get(found, "columns").array.items;
        const names_ = try call.arena.alloc([]const u8, columns.len);
        for (columns, names_) |column, *name| name.* = string(column);
        const rows = get(found, "rows").array.items;
        const values = try call.arena.alloc([]const SqlValue, rows.len);
        var bytes: ?[]const u8 = null;
        for (rows, values) |row, *list| list.* = try decode(call, row.array.items, &bytes);
        return .{ .columns = names_, .rows = values };
    }

    /// Runs a statement and returns what it changed.
    pub fn exec(call: *Call, statement: []const u8, args: []const SqlValue) !Changes {
        const head, const blobs = try encode(call, statement, args);
        const done = try answer(call, database.exec(head.ptr, head.len, blobs.ptr, blobs.len));
        return .{ .changes = get(done, "changes").integer, .last_insert_id = get(done, "lastInsertId").integer };
    }

    /// Starts a transaction, which is undone unless the call commits it. Without write it only reads.
    pub fn begin(call: *Call, write: bool) !void {
        return control(call, database.begin(@intFromBool(write)));
    }

    pub fn commit(call: *Call) !void {
        return control(call, database.commit());
    }

    pub fn rollback(call: *Call) !void {
        return control(call, database.rollback());
    }

    fn encode(call: *Call, statement: []const u8, args: []const SqlValue) !struct { []const u8, []const u8 } {
        if (!std.unicode.utf8ValidateSlice(statement)) return call.failWith("invalid", "the statement is not UTF-8");
        var blobs: Writer.Allocating = .init(call.arena);
        for (args) |arg| switch (arg) {
            .real => |f| if (std.math.isNan(f)) return call.failWith("invalid", "SQL does not know NaN"),
            .text => |t| if (!std.unicode.utf8ValidateSlice(t)) {
                return call.failWith("invalid", "a text is not UTF-8: send it as a blob");
            },
            .blob => |b| try blobs.writer.writeAll(b),
            else => {},
        };
        return .{ try std.json.Stringify.valueAlloc(call.arena, .{ .sql = statement, .args = args }, .{}), blobs.written() };
    }

    /// Decodes a row. The bytes of an answer's blobs are taken with the first of them.
    fn decode(call: *Call, row: []const Value, bytes: *?[]const u8) ![]const SqlValue {
        const values = try call.arena.alloc(SqlValue, row.len);
        for (row, values) |column, *value| value.* = switch (column) {
            .integer => |n| .{ .integer = n },
            .float => |f| .{ .real = f },
            .number_string => |infinite| .{ .real = try std.fmt.parseFloat(f64, infinite) },
            .string => |t| .{ .text = t },
            .object => blk: {
                const left = bytes.* orelse try take(call, database.blobs());
                const length: usize = @intCast(get(column, "blob").integer);
                bytes.* = left[length..];
                break :blk .{ .blob = left[0..length] };
            },
            else => .none,
        };
        return values;
    }

    fn answer(call: *Call, length: usize) !Value {
        const value = try takeValue(call, length);
        return if (get(value, "error") == .object) hostError(call, get(value, "error")) else value;
    }

    fn control(call: *Call, length: usize) !void {
        if (length > 0) _ = try answer(call, length);
    }
};
