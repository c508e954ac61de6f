// The console of a real host, from the login to the audit log, in the order in which somebody meets it.
import assert from 'node:assert/strict'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'

import { accessible, answer, clean, root, shoot, startChromium, visit } from './chromium.mjs'
import { call, startHost, tokens } from './host.mjs'

let chromium
before(async () => { chromium = await startChromium() })
after(() => chromium.close())

async function login(host, role, options) {
  const page = await chromium.open(host.url, options)
  await page.locator('#token').fill(tokens[role])
  await page.keyboard.press('Enter')
  await page.locator('.stat').first().waitFor()
  return page
}

describe('a host with tokens', () => {
  let host, admin
  before(async () => {
    host = await startHost()
    admin = await login(host, 'admin')
  })
  after(async () => {
    await clean(admin)
    await host.stop()
  })

  test('a wrong token does not get in, and a viewer changes nothing', async () => {
    const page = await chromium.open(host.url)
    await page.locator('#token').fill('hako_wrong')
    await page.keyboard.press('Enter')
    await page.locator('.problem').waitFor()
    await page.locator('#token').fill(tokens.viewer)
    await page.keyboard.press('Enter')
    await page.locator('.stat').first().waitFor()
    await visit(page, 'plugins/weather')
    await page.getByText('This needs the role admin.').first().waitFor()
    const refused = await page.evaluate(async () => {
      const { csrf } = await (await fetch('api/session')).json()
      const headers = { 'Content-Type': 'application/json', 'X-Hako-CSRF': csrf }
      return (await fetch('api/plugins/weather/approve', { method: 'POST', headers, body: '{"digest":"sha256:0","version":"sha256:0"}' })).status
    })
    assert.equal(refused, 403)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.locator('#token').waitFor()
    assert.equal(await page.evaluate(async () => (await (await fetch('api/session')).json()).user), null)
    await clean(page)
  })

  test('a plugin that waits is approved, and its tool called by the form', async () => {
    await admin.locator('.attention').getByRole('link', { name: 'weather' }).click()
    await admin.getByRole('button', { name: 'Approve' }).click()
    const dialog = admin.getByRole('dialog')
    await dialog.getByText(/http jma: may send GET.* to https:\/\/www\.jma\.go\.jp/).waitFor()
    await accessible(admin, 'the dialog')
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await admin.locator('.head .badge.good').waitFor()
    await admin.getByRole('link', { name: 'get_weather' }).click()
    await admin.getByLabel('location').fill('東京')
    await admin.getByRole('button', { name: 'Call', exact: true }).click()
    await admin.locator('.result .badge.good').waitFor()
    assert.match(await admin.locator('.result').textContent(), /東京/)
    await shoot(admin, 'host-tool')
  })

  test('a call waits, is announced, answered, and gets its result', async () => {
    const approver = await login(host, 'approver')
    await visit(approver, 'approvals')
    const waiting = call(host.mcp, 'get_weather', { location: '大阪' })
    const question = approver.locator('.question:not(.answered)')
    await question.waitFor()
    await approver.waitForFunction(() => document.title.startsWith('(1)'))
    assert.match(await question.textContent(), /大阪[^]*ask <b>clients<\/b>/)
    await shoot(approver, 'host-approval')
    await answer(question, 'Allow this call')
    const result = await waiting
    assert.ok(!result.isError, JSON.stringify(result))
    assert.match(result.content[0].text, /大阪/)
    await question.waitFor({ state: 'detached' })
    const refused = call(host.mcp, 'get_weather', { location: '京都' })
    await answer(question, 'Refuse')
    assert.match(JSON.stringify(await refused), /not allowed/)
    await clean(approver)
  })

  test('a call that runs appears with no reload, and Stop ends it; its page shows the steps', async () => {
    await visit(admin, 'calls')
    await admin.locator('.calls tbody tr').first().waitFor()
    const running = call(host.mcp, 'get_weather', { location: '名古屋' })
    const row = admin.locator('.calls tbody tr').filter({ hasText: 'waits for a person' })
    await row.waitFor()
    await shoot(admin, 'host-calls')
    await row.getByRole('button', { name: 'Stop get_weather?' }).click()
    await admin.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    const result = await running
    assert.ok(result.isError)
    assert.match(result.content[0].text, /an operator of this server stopped the call/)
    const stopped = admin.locator('.calls tbody tr').filter({ hasText: 'stopped' })
    await stopped.click()
    await admin.locator('.steps tr').filter({ hasText: 'Approval' }).waitFor()
    await admin.getByText('browser 1').waitFor()
    await shoot(admin, 'host-call-stopped')
    await visit(admin, 'calls')
    await admin.locator('.calls tbody tr').filter({ hasText: 'ok' }).first().click()
    await admin.locator('.steps tr').filter({ hasText: 'Instance' }).waitFor()
    await shoot(admin, 'host-call')
  })

  test('calls are charted, and what fails has a remedy', async () => {
    await visit(admin, 'calls')
    await admin.locator('.calls tbody tr').nth(1).waitFor()
    assert.match(await admin.locator('.calls tbody').textContent(), /get_weather/)
    const before = await admin.locator('.calls tbody tr').count()
    assert.ok(JSON.stringify(await call(host.mcp, 'get_weather', { place: 1 })).includes('place'))
    await admin.locator('.calls tbody tr').nth(before).waitFor()
    await visit(admin, 'errors')
    await admin.locator('.errors tbody tr').filter({ hasText: 'get_weather' }).first().waitFor()
    await visit(admin, 'tools')
    await admin.locator('.tools tbody tr').first().waitFor()
    await shoot(admin, 'host-tools')
    await visit(admin, 'overview')
    await admin.locator('.overview tbody tr').filter({ hasText: 'get_weather' }).waitFor()
    await shoot(admin, 'host-overview')
  })

  test('the audit log has it all, and is whole', async () => {
    await visit(admin, 'audit')
    await admin.getByRole('button', { name: 'Verify now' }).click()
    await admin.getByText('The log is whole').waitFor()
    await admin.getByLabel('Text').fill('plugin.approve')
    await admin.getByRole('button', { name: 'Search' }).click()
    await admin.locator('.audit tbody tr').filter({ hasText: 'plugin.approve' }).first().waitFor()
    await admin.getByLabel('Text').fill('')
    await admin.getByLabel('Tool', { exact: true }).fill('get_weather')
    await admin.getByRole('button', { name: 'Search' }).click()
    await admin.locator('.audit tbody tr').filter({ hasText: 'console' }).first().waitFor()
    await shoot(admin, 'host-audit')
    await admin.locator('.audit .opener').first().click()
    await admin.getByRole('dialog').waitFor()
    await admin.keyboard.press('Escape')
  })

  test('the log is downloaded as filtered', async () => {
    for (const [name, expected] of [['JSON Lines', /"name":"get_weather"/], ['CSV', /^\ufeffseq,time,/]]) {
      const [download] = await Promise.all([admin.waitForEvent('download'), admin.getByRole('link', { name }).click()])
      const text = await readFile(await download.path(), 'utf8')
      assert.match(text, expected)
      assert.ok(!text.includes('console.login'), text)
    }
  })

  test('connected clients are listed, and a session is ended', async () => {
    await visit(admin, 'sessions')
    const rows = admin.locator('.sessions tbody tr').filter({ hasText: 'browser' })
    await rows.first().waitFor()
    const before = await rows.count()
    await shoot(admin, 'host-sessions')
    await rows.first().getByRole('button', { name: 'End' }).click()
    await admin.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click()
    await admin.waitForFunction(n => [...document.querySelectorAll('.sessions tbody tr')].filter(row => row.textContent.includes('browser')).length === n, before - 1)
  })

  test('a token is created, signs somebody in, and is revoked', async () => {
    await visit(admin, 'tokens')
    await admin.locator('.tokens tbody tr').filter({ hasText: 'console.tokens' }).first().waitFor()
    await admin.getByRole('button', { name: 'New token' }).click()
    const form = admin.getByRole('dialog')
    await form.getByRole('button', { name: 'Create' }).click()
    await form.getByText('Give the token a name.').waitFor()
    await form.getByLabel('Name').fill('mori-laptop')
    await form.getByLabel('For', { exact: true }).selectOption('viewer')
    await form.getByLabel('User').fill('mori@example.com')
    await form.getByRole('button', { name: 'Create' }).click()
    const token = await admin.locator('.secret').inputValue()
    assert.match(token, /^hako_[\w-]{43}$/)
    await Promise.all([admin.getByRole('status').filter({ hasText: /Copied|allow/ }).waitFor(), admin.getByRole('button', { name: 'Copy' }).click()])
    await admin.getByRole('button', { name: 'Done' }).click()
    await admin.locator('.secret').waitFor({ state: 'detached' }) // the browser announces that a dialog has closed a moment later
    assert.ok(!(await admin.content()).includes(token))
    const mori = await chromium.open(host.url)
    await mori.locator('#token').fill(token)
    await mori.keyboard.press('Enter')
    await mori.locator('.stat').first().waitFor()
    await visit(mori, 'tokens')
    await mori.getByText('This needs the role admin.').first().waitFor()
    const row = admin.locator('.tokens tbody tr').filter({ hasText: 'mori-laptop' })
    await row.getByRole('button', { name: 'Revoke' }).click()
    await admin.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await row.getByText('valid').waitFor()
    await row.getByRole('button', { name: 'Revoke' }).click()
    await admin.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
    await row.getByText('revoked').waitFor()
    await mori.locator('#token').waitFor()
    await shoot(admin, 'host-tokens')
  })

  test('another policy is tried on the calls so far', async () => {
    await visit(admin, 'policy/explain?tool=get_weather&user=aki')
    await admin.locator('.policy .verdict').waitFor()
    await admin.getByRole('link', { name: 'Try a change' }).click()
    await admin.waitForFunction(() => document.querySelector('.editor')?.value.includes('version: 1'))
    await admin.locator('.editor').fill('version: 1\ndefault: deny\n')
    await admin.getByRole('button', { name: 'Check and try' }).click()
    await admin.locator('.result tbody tr').filter({ hasText: 'get_weather' }).filter({ hasText: 'deny' }).first().waitFor()
    await shoot(admin, 'host-policy-trial')
    await visit(admin, 'policy')
  })

  test('every other view shows what there is', async () => {
    for (const [name, shown] of [['plugins', 'tbody tr'], ['connections', '.lines li'], ['configuration', 'tbody tr']]) {
      await visit(admin, name)
      await admin.locator(`.${name} ${shown}`).first().waitFor()
      await shoot(admin, `host-${name}`)
    }
  })

  test('the configuration is read anew: what is in force, and what is wrong', async () => {
    const file = path.join(host.cwd, 'hako.yaml')
    const before = await readFile(file, 'utf8')
    await visit(admin, 'configuration')
    await writeFile(file, `${before}\nlimits: {time: 20s}\n`)
    await admin.getByRole('button', { name: 'Reload' }).click()
    // The host sees by itself that the file has changed, so the button may find nothing left to do.
    await admin.locator('.notice.good').waitFor()
    await admin.locator('tbody tr', { hasText: 'limits.time' }).filter({ hasText: '20s' }).waitFor()
    await writeFile(file, `${before}\nlimitz: {}\n`)
    await admin.getByRole('button', { name: 'Reload' }).click()
    await admin.locator('.problem', { hasText: 'limitz' }).waitFor()
    await shoot(admin, 'host-reload')
    await writeFile(file, before)
  })

  test('hako is started again: the page says so, and goes on in the same session', async () => {
    await visit(admin, 'overview')
    await host.restart(() => admin.getByText('hako cannot be reached').waitFor())
    await admin.getByText('hako cannot be reached').waitFor({ state: 'detached' })
    await admin.locator('.stat').first().waitFor()
    await admin.locator('.overview .empty', { hasText: 'No calls in this time.' }).waitFor()
    await admin.getByLabel('Time that is shown').selectOption('day')
    await admin.locator('.overview tbody tr').filter({ hasText: 'get_weather' }).waitFor()
    await shoot(admin, 'host-day')
    await admin.getByLabel('Time that is shown').selectOption('hour')
  })

  test('logging out everywhere ends the session of another browser', async () => {
    const [one, other] = [await login(host, 'viewer'), await login(host, 'viewer')]
    await one.getByRole('button', { name: 'Sign out everywhere' }).click()
    await one.locator('#token').waitFor()
    await other.getByText('Your session has ended').waitFor()
    await Promise.all([clean(one), clean(other)])
  })

  test('a plugin is added from a file, and waits for approval', async () => {
    await visit(admin, 'plugins')
    await admin.getByRole('button', { name: 'Add a plugin' }).click()
    const [chooser] = await Promise.all([admin.waitForEvent('filechooser'), admin.getByRole('button', { name: 'Choose a file' }).click()])
    await chooser.setFiles({ name: 'weather.wasm', mimeType: 'application/wasm', buffer: Buffer.from('PK no module') })
    await admin.getByRole('dialog').locator('.problem').waitFor()
    await admin.evaluate(async () => { // as a file manager drops it
      const data = new DataTransfer()
      const file = await (await fetch('/console/')).blob()
      data.items.add(new File([file], 'page.wasm'))
      document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true }))
    })
    await admin.getByRole('dialog').locator('.problem', { hasText: 'not a Wasm module' }).waitFor()
    const [second] = await Promise.all([admin.waitForEvent('filechooser'), admin.getByRole('button', { name: 'Choose a file' }).click()])
    await second.setFiles(path.join(root, 'dist/plugins/files.wasm'))
    await admin.getByRole('dialog').getByText('may read, change and delete').first().waitFor()
    await shoot(admin, 'host-add')
    await admin.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click()
    await admin.locator('.head h1', { hasText: 'files' }).waitFor()
    await admin.locator('.head .badge', { hasText: 'pending' }).waitFor()
  })

  test('a plugin is found in an index and added with two clicks, and waits for approval', async () => {
    await copyFile(path.join(root, 'dist/plugins/tasks.wasm'), path.join(host.cwd, 'listed.wasm'))
    await writeFile(path.join(host.cwd, 'index.yaml'), 'plugins:\n- {name: tasks, reference: listed.wasm, title: {en: Tasks, ja: タスク管理}}\n- {name: Evil, reference: x}\n')
    await visit(admin, 'find')
    await admin.getByRole('searchbox').fill('たすく')
    await admin.locator('.find .opener', { hasText: 'Tasks' }).click()
    await admin.getByRole('dialog', { name: 'Add tasks' }).locator('.facts').waitFor()
    await shoot(admin, 'host-find')
    await admin.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click()
    await admin.locator('.head h1', { hasText: 'tasks' }).waitFor()
    await admin.locator('.head .badge', { hasText: 'pending' }).waitFor()
    await admin.locator('.head').getByRole('button', { name: /Approve|Choose what it gets/ }).waitFor()
  })

  test('a plugin that was added is removed', async () => {
    await visit(admin, 'plugins/tasks')
    await admin.getByRole('button', { name: 'Remove …' }).click()
    await admin.getByRole('dialog').getByRole('button', { name: 'Remove …' }).click()
    await admin.getByRole('dialog', { name: 'tasks is removed' }).getByText('a copy of the file').waitFor()
    await admin.keyboard.press('Escape')
  })

  test('a plugin is revoked', async () => {
    await visit(admin, 'plugins/weather')
    await admin.getByRole('button', { name: 'Revoke' }).click()
    await admin.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await admin.locator('.head .badge', { hasText: 'revoked' }).waitFor()
  })
})

test('without logins, the link that hako printed opens the console once', async t => {
  const host = await startHost({ configured: false })
  t.after(() => host.stop())
  const page = await chromium.open(host.link, { language: 'ja' })
  await page.locator('.stat').first().waitFor()
  assert.ok(!page.url().includes('link='))
  await shoot(page, 'host-demonstration')
  await clean(page)
  const second = await chromium.open(host.link)
  await second.getByText('This link does not sign in').waitFor()
  await clean(second)
})
