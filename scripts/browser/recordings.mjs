// One approval as a sequence of pictures in each frontend: the console, the terminal, the fake Slack, and the form of an MCP client (the
// Inspector). A client overwrites a file, and the policy wants a person's yes. The pictures go to dist/browser/recording-FRONTEND-N.png.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'

import { clean, root, shoot, startChromium } from './chromium.mjs'
import { call, startHost, tokens } from './host.mjs'
import { startSlack } from './slack.mjs'

const hako = process.env.HAKO ?? path.join(root, 'bin/hako')
const inspector = path.join(root, 'scripts/clients/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js')

const rules = `
version: 1
default: allow
rules:
  - {name: people agree to changes, action: ask, tools: [file_write], frontends: [mcp-http], reason: {en: files are shared, ja: 共有のファイルです}}
`
const change = { path: 'plan.txt', content: 'Monday: review\nTuesday: release 1.4\nFriday: retrospective\n', overwrite: true }

let chromium, host
before(async () => {
  chromium = await startChromium()
  host = await startHost()
  await host.restart(async () => {
    const file = path.join(host.cwd, 'hako.yaml')
    await writeFile(file, (await readFile(file, 'utf8')).replace('{enabled: false}', '{enabled: true, mounts: {workspace: workspace}}'))
    await writeFile(path.join(host.cwd, 'hako.policy.yaml'), rules)
    await mkdir(path.join(host.cwd, 'workspace'))
  })
})
after(async () => {
  await chromium.close()
  await host.stop()
})

/** begin puts the old file in its place. */
const begin = (text = 'Monday: review\nTuesday: release 1.3\n') => writeFile(path.join(host.cwd, 'workspace/plan.txt'), text)

/** recorder numbers the pictures of a frontend. */
function recorder(frontend) {
  let n = 0
  return page => shoot(page, `recording-${frontend}-${++n}`)
}

test('the console', async () => {
  await begin()
  const shot = recorder('console')
  const page = await chromium.open(host.url)
  await page.locator('#token').fill(tokens.admin)
  await page.keyboard.press('Enter')
  await page.locator('.stat').first().waitFor()
  await page.evaluate(() => { location.hash = '#/approvals' })
  await page.locator('.approvals h1').waitFor()
  await shot(page)
  const waiting = call(host.mcp, 'file_write', change)
  const question = page.locator('.question:not(.answered)')
  await question.waitFor()
  await shot(page)
  await question.locator('details summary').last().click()
  await shot(page)
  await question.getByRole('button', { name: 'Allow this call' }).click()
  assert.ok(!(await waiting).isError)
  await page.locator('.history tbody tr, .approvals tbody tr').first().waitFor()
  await page.mouse.move(5, 5) // the answered card folds when the pointer is elsewhere
  await page.waitForFunction(() => !document.querySelector('.question.answered').style.minHeight)
  await shot(page)
  await page.evaluate(() => { location.hash = '#/calls' })
  await page.locator('.calls tbody tr').first().click()
  await page.locator('.steps tr').first().waitFor()
  await shot(page)
  await clean(page)
})

test('the terminal', async () => {
  await begin()
  const shot = recorder('terminal')
  const page = await openTerminal(100, 34)
  const watch = atTerminal(page, 100, 34, [hako, '--directory', host.cwd, 'approvals', 'watch'])
  await watch.shows(/./)
  await shot(page)
  const waiting = call(host.mcp, 'file_write', change)
  await watch.shows(/plan\.txt/)
  await watch.shows(/release 1\.4/)
  await shot(page)
  watch.type('yes 1\r')
  assert.ok(!(await waiting).isError)
  await watch.shows(/yes 1[^]*\S[^]*\n/)
  await shot(page)
  await watch.stop()
  await clean(page)
})

test('Slack', async () => {
  const shot = recorder('slack')
  const slack = await startSlack()
  const as = async person => {
    const page = await chromium.open(slack.url)
    await page.locator('#person').selectOption(person)
    await page.locator(`#person option[value="${person}"]:checked`).waitFor({ state: 'attached' })
    await page.waitForFunction(id => location.search.includes(id), person)
    return page
  }
  const ken = await as('U0000000K1')
  await ken.locator('#compose textarea').fill('@hako Put the overtime of May into the sheet and tell Aki')
  await shot(ken)
  await ken.keyboard.press('Enter')
  const approve = ken.locator('#replies article').filter({ hasText: 'write_rows_to_google_sheet' }).getByRole('button', { name: 'Approve' })
  await approve.waitFor()
  await shot(ken)
  await approve.click()
  await ken.locator('#replies article').filter({ hasText: 'send_slack_dm' }).getByRole('button', { name: 'Approve' }).waitFor()
  await shot(ken)
  const aki = await as('U0000000A1')
  await aki.locator('#messages').getByRole('button', { name: /Open thread|スレッドを開く/ }).last().click()
  const hers = aki.locator('#replies article').filter({ hasText: 'send_slack_dm' }).getByRole('button', { name: /Approve|許可/ })
  await hers.waitFor()
  await shot(aki)
  await hers.click()
  await ken.locator('#replies').getByText('Aki knows of it on Slack').first().waitFor()
  await shot(ken)
  await clean(aki)
  await clean(ken)
  await slack.stop()
})

test('the form of an MCP client', async () => {
  await begin('Tuesday: release 1.3') // one line, as the Inspector's fields have
  const shot = recorder('form')
  const client = await startInspector()
  const page = await chromium.open(client.url)
  await client.connect(page)
  await shot(page)
  await client.call(page, 'file_write', { ...change, content: 'Tuesday: release 1.4' })
  await page.getByText('release 1.4').first().waitFor()
  await shot(page)
  await page.getByRole('checkbox', { name: 'Allow this call' }).check({ force: true })
  await shot(page)
  await page.getByRole('button', { name: 'Submit' }).click()
  await page.getByRole('button', { name: 'Submit' }).waitFor({ state: 'detached' })
  await shot(page)
  await client.stop()
  await page.context().close() // what the Inspector writes into its console is its own
})

/** openTerminal opens a page with a terminal emulator, xterm.js. */
async function openTerminal(columns, rows) {
  const modules = path.join(import.meta.dirname, 'node_modules/@xterm/xterm')
  const page = await chromium.open('about:blank', { size: 'desktop' })
  await page.setContent('<!doctype html><title>terminal</title><body style="margin:16px;background:#1e1e1e"><div id="terminal"></div></body>')
  await page.addStyleTag({ path: path.join(modules, 'css/xterm.css') })
  await page.addScriptTag({ path: path.join(modules, 'lib/xterm.js') })
  await page.evaluate(([cols, rows]) => {
    globalThis.terminal = new globalThis.Terminal({ cols, rows, fontSize: 15, fontFamily: 'monospace', theme: { background: '#1e1e1e' } })
    globalThis.terminal.open(document.querySelector('#terminal'))
  }, [columns, rows])
  return page
}

/** atTerminal runs a program at a pseudo-terminal, which the page shows. shows waits until a pattern is in what it printed. */
function atTerminal(page, columns, rows, command) {
  const quoted = command.map(word => `'${word}'`).join(' ')
  const child = spawn('script', ['-qfec', `stty cols ${columns} rows ${rows}; exec ${quoted}`, '/dev/null'],
    { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, TERM: 'xterm-256color', LANG: 'C.UTF-8', MOCK_MODE: 'true' } })
  const exited = new Promise(resolve => child.once('exit', resolve))
  let printed = '', shown = Promise.resolve(), check = () => {}
  child.stdout.on('data', chunk => {
    printed += chunk
    shown = shown.then(() => page.evaluate(bytes => new Promise(done => globalThis.terminal.write(new Uint8Array(bytes), done)), [...chunk]))
    check()
  })
  return {
    async shows(pattern) {
      await new Promise(resolve => {
        check = () => pattern.test(printed) && resolve()
        check()
      })
      await shown
    },
    type: text => child.stdin.write(text),
    async stop() {
      child.stdin.write('\x03')
      await exited
    },
  }
}

/** startInspector starts the Inspector's page for the host. connect and call do there what a person does. */
async function startInspector() {
  const home = await mkdtemp(path.join(tmpdir(), 'hako-inspector-'))
  const port = String(30000 + Math.floor(Math.random() * 2000))
  const child = spawn(process.execPath, [inspector, '--web', '--transport', 'http', '--server-url', host.mcp], {
    stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, HOME: home, CLIENT_PORT: port, MCP_AUTO_OPEN_ENABLED: 'false', MCP_INSPECTOR_SECRET_STORE: 'memory' },
  })
  const exited = new Promise(resolve => child.once('exit', resolve))
  const url = await new Promise((resolve, reject) => {
    let log = ''
    child.stdout.on('data', chunk => {
      log += chunk
      const found = log.match(/http:\S+API_TOKEN=\w+/)
      if (found) resolve(found[0])
    })
    exited.then(() => reject(new Error(`the Inspector ended:\n${log}`)))
  })
  return {
    url,
    async connect(page) {
      await page.getByRole('switch').first().click({ force: true }) // its input is drawn by its label
      await page.getByText('Tools', { exact: true }).first().click()
    },
    async call(page, tool, { path, content, overwrite }) {
      await page.getByText(tool, { exact: true }).first().click()
      await page.getByLabel(/^path/).first().fill(path)
      await page.getByLabel(/^content/).first().fill(content)
      if (overwrite) await page.getByLabel(/^overwrite/).first().check({ force: true })
      await page.getByRole('button', { name: /execute|call|run/i }).first().click()
    },
    async stop() {
      child.kill('SIGTERM')
      await exited
      await rm(home, { recursive: true, force: true })
    },
  }
}
