import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Kafka's command-line tools, one after the other in one JVM.
 *
 * <p>{@code ToolSession SCRIPT} reads one JSON array of strings per line: the main class, the
 * standard input, then the arguments. It prints one JSON object per command: the exit code and
 * both outputs. Each command gets its own copy of the tools' classes, since they keep counts in
 * static fields.
 */
public final class ToolSession {
    /** Far above what a command takes; one that reaches it has the exit code -1. */
    private static final long DEADLINE_MS = 15_000;

    /** How long a command's shutdown hooks may take. */
    private static final long HOOK_MS = 3_000;

    private static final ObjectMapper JSON = new ObjectMapper();

    /** Ends a command where a JVM of its own would end. */
    private static final class Exited extends ThreadDeath {
        private static final long serialVersionUID = 1L;
    }

    /** The tools' own classes come from a jar that is read anew; all else is shared. */
    private static final class ToolLoader extends URLClassLoader {
        ToolLoader(URL jar) {
            super(new URL[] {jar}, ToolSession.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                try {
                    return loaded == null ? findClass(name) : loaded;
                } catch (ClassNotFoundException absent) {
                    return super.loadClass(name, resolve);
                }
            }
        }
    }

    private final PrintStream results;
    private final URL jar;

    private ToolSession(PrintStream results, URL jar) {
        this.results = results;
        this.jar = jar;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream results = new PrintStream(
            new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        Class<?> tool = Class.forName("org.apache.kafka.tools.TopicCommand");
        URL jar = tool.getProtectionDomain().getCodeSource().getLocation();
        ToolSession session = new ToolSession(results, jar);
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            session.run(List.of(JSON.readValue(line, String[].class)));
        }
        results.flush();
        Runtime.getRuntime().halt(0);
    }

    private void run(List<String> command) throws IOException, InterruptedException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream output = new PrintStream(out, true, StandardCharsets.UTF_8);
        PrintStream errors = new PrintStream(err, true, StandardCharsets.UTF_8);
        InputStream input =
            new ByteArrayInputStream(command.get(1).getBytes(StandardCharsets.UTF_8));
        System.setOut(output);
        System.setErr(errors);
        System.setIn(input);
        AtomicInteger exit = new AtomicInteger(Integer.MIN_VALUE);
        List<Thread> hooks = new CopyOnWriteArrayList<>();
        Exit.Procedure end = (code, message) -> {
            exit.compareAndSet(Integer.MIN_VALUE, code);
            throw new Exited();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(new Thread(hook, name)));
        long started = System.nanoTime();
        Thread main = new Thread(() -> call(command, exit), "main");
        main.setDaemon(true);
        main.start();
        main.join(DEADLINE_MS);
        if (main.isAlive()) {
            exit.compareAndSet(Integer.MIN_VALUE, -1);
        }
        for (Thread hook : hooks) {
            hook.setDaemon(true);
            hook.start();
            hook.join(HOOK_MS);
        }
        if (main.isAlive()) {
            main.interrupt();
            main.join(HOOK_MS);
        }
        Map<String, Object> result = new TreeMap<>();
        result.put("exit", exit.get() == Integer.MIN_VALUE ? 0 : exit.get());
        result.put("out", out.toString(StandardCharsets.UTF_8));
        result.put("err", err.toString(StandardCharsets.UTF_8));
        result.put("ms", TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - started));
        results.println(JSON.writeValueAsString(result));
    }

    /** Calls the main method, whose uncaught exception is printed and exits with 1, as a JVM's. */
    private void call(List<String> command, AtomicInteger exit) {
        String[] arguments =
            new ArrayList<>(command.subList(2, command.size())).toArray(String[]::new);
        try (ToolLoader loader = new ToolLoader(jar)) {
            Thread.currentThread().setContextClassLoader(loader);
            Class<?> tool = Class.forName(command.get(0), true, loader);
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Exited)) {
                System.err.println("Exception in thread \"main\" " + thrown.getCause());
                exit.compareAndSet(Integer.MIN_VALUE, 1);
            }
        } catch (IOException | ReflectiveOperationException wrong) {
            System.err.println("cannot run: " + wrong);
            exit.compareAndSet(Integer.MIN_VALUE, -2);
        }
    }
}
