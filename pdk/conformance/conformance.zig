//! The plugin that hako plugin conformance tests the Zig PDK by.

const hako = @import("hako");
const std = @import("std");
const Value = std.json.Value;

pub const panic = hako.panic;

const handlers: hako.Handlers = .{
    .tools = &.{
        hako.tool("echo", echo),
        hako.tool("add", add),
        hako.tool("blocks", blocks),
        hako.tool("bytes", bytes),
        hako.tool("fail", fail),
        hako.tool("panic", panics),
        hako.tool("progress", progress),
        hako.tool("log", log),
        hako.tool("config", config),
        hako.tool("locale", locale),
        hako.tool("count", count),
        hako.tool("random", random),
        hako.tool("update", update),
        hako.tool("http", http),
        hako.tool("parallel", parallel),
        hako.tool("exec", exec),
        hako.tool("query", query),
        hako.tool("copy", copy),
        hako.tool("transaction", transaction),
    },
    .resources = &.{
        .{ .uri = "conformance://text", .handle = text },
        .{ .uri = "conformance://bytes", .handle = binary },
    },
    .templates = &.{.{ .uri = "conformance://item/{id}", .handle = item }},
    .prompts = &.{.{ .name = "greet", .handle = greet }},
    .completers = &.{.{ .of = "greet", .argument = "name", .handle = complete }},
};

comptime {
    hako.exportPlugin(handlers);
}

const Args = struct {
    a: i64 = 0,
    b: i64 = 0,
    steps: u32 = 0,
    bytes: []const u8 = "",
    urls: []const []const u8 = &.{},
    text: []const u8 = "",
    message: []const u8 = "",
    uri: []const u8 = "",
    method: []const u8 = "",
    url: []const u8 = "",
    body: []const u8 = "",
    sql: []const u8 = "",
    into: []const u8 = "",
    keep: bool = false,
};

const all = blk: {
    var bytes_: [256]u8 = undefined;
    for (&bytes_, 0..) |*b, i| b.* = i;
    break :blk bytes_;
};

fn echo(call: *hako.Call, in: Args) !void {
    try call.text("{s}", .{in.text});
}

fn add(call: *hako.Call, in: Args) !void {
    try call.structured(.{ .sum = in.a + in.b });
}

fn blocks(call: *hako.Call, _: Args) !void {
    try call.text("text", .{});
    try call.image("image/png", &all);
    try call.audio("audio/wav", &all);
    try call.link("conformance://text", "text", "text/plain");
    try call.resource(.{ .uri = "conformance://text", .mimeType = "text/plain", .text = "embedded" });
}

fn bytes(call: *hako.Call, in: Args) !void {
    try call.text("{s}", .{in.bytes});
}

fn fail(call: *hako.Call, in: Args) !void {
    return call.fail("{s}", .{in.message});
}

fn panics(_: *hako.Call, in: Args) !void {
    @panic(in.message);
}

fn progress(call: *hako.Call, in: Args) !void {
    for (1..in.steps + 1) |i| hako.progress(@floatFromInt(i), @floatFromInt(in.steps), try call.format("step {d}", .{i}));
    try call.text("done", .{});
}

fn log(call: *hako.Call, in: Args) !void {
    hako.log(.info, in.message);
    try call.text("logged", .{});
}

fn config(call: *hako.Call, _: Args) !void {
    const settings = try call.config(struct { greeting: []const u8 });
    try call.text("{s}", .{settings.greeting});
}

fn locale(call: *hako.Call, _: Args) !void {
    try call.text("{s}", .{call.locale()});
}

var calls: u32 = 0;

fn count(call: *hako.Call, _: Args) !void {
    calls += 1;
    try call.text("{d}", .{calls});
}

fn random(call: *hako.Call, _: Args) !void {
    try call.text("{d}", .{hako.random(u64)});
}

fn update(call: *hako.Call, in: Args) !void {
    hako.resourceUpdated(in.uri);
    try call.text("updated", .{});
}

fn http(call: *hako.Call, in: Args) !void {
    const request: hako.Request = .{ .method = in.method, .url = in.url, .body = in.body };
    const response = try request.send(call);
    try call.structured(.{ .status = response.status, .type = response.header("Content-Type"), .body = response.body });
}

fn parallel(call: *hako.Call, in: Args) !void {
    const started = try call.arena.alloc(hako.Pending, in.urls.len);
    for (in.urls, started) |url, *pending| pending.* = try (hako.Request{ .url = url }).start(call);
    const bodies = try call.arena.alloc([]const u8, in.urls.len);
    for (started, bodies) |pending, *body| body.* = (try pending.wait(call)).body;
    try call.text("{s}", .{try std.mem.join(call.arena, "|", bodies)});
}

fn exec(call: *hako.Call, in: Args) !void {
    const done = try hako.sql.exec(call, in.sql, &.{});
    try call.text("{d}", .{done.changes});
}

fn query(call: *hako.Call, in: Args) !void {
    const found = try hako.sql.query(call, in.sql, &.{.{ .text = in.text }});
    switch (found.rows[0][0]) {
        .integer => |n| try call.text("{d}", .{n}),
        .text => |value| try call.text("{s}", .{value}),
        else => |value| return call.fail("the value is {t}", .{value}),
    }
}

fn copy(call: *hako.Call, in: Args) !void {
    const found = try hako.sql.query(call, in.sql, &.{});
    const copied = try hako.sql.query(call, in.into, found.rows[found.rows.len - 1]);
    try call.text("{s}", .{copied.rows[0][0].text});
}

fn transaction(call: *hako.Call, in: Args) !void {
    try hako.sql.begin(call, true);
    const done = try hako.sql.exec(call, in.sql, &.{});
    if (in.keep) try hako.sql.commit(call) else try hako.sql.rollback(call);
    try call.text("{d}", .{done.changes});
}

fn text(call: *hako.Call, uri: []const u8, _: Value) !void {
    try call.contentsText(uri, "text/plain", "a text");
}

fn binary(call: *hako.Call, uri: []const u8, _: Value) !void {
    try call.contentsBytes(uri, "application/octet-stream", &all);
}

fn item(call: *hako.Call, uri: []const u8, variables: Value) !void {
    try call.contentsText(uri, "text/plain", try call.format("item {s}", .{hako.string(hako.get(variables, "id"))}));
}

fn greet(call: *hako.Call, arguments: Value) !void {
    try call.say("user", try call.format("Greet {s}.", .{hako.string(hako.get(arguments, "name"))}));
}

fn complete(call: *hako.Call, value: []const u8, _: Value) !void {
    try call.add(try call.format("{s}1", .{value}));
    try call.add(try call.format("{s}2", .{value}));
}
