const readline = require("node:readline");
const { setTimeout: wait } = require("node:timers/promises");

const reply = (document) => process.stdout.write(JSON.stringify(document) + "\n");

async function handle(order) {
  await wait(10); // up to in_flight_max orders wait beside each other
  console.error(`${order.key} orders ${order.value}`);
}

reply({ moldau: 1 });
readline.createInterface({ input: process.stdin }).on("line", async (line) => {
  const order = JSON.parse(line);
  try {
    await handle(order);
    reply({ id: order.id, ok: true });
  } catch (error) {
    reply({ id: order.id, error: String(error) });
  }
});
