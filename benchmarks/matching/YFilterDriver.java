/*
 * Times YFilter 1.0 on profiles and messages.
 *
 *   java -cp CLASSES YFilterDriver.java PROFILES NUMBER WARM_DIR MEASURED_DIR SECONDS CLOCK
 *
 * PROFILES has one path a line; the first NUMBER are registered.  The messages of the first
 * directory are filtered again and again for so many seconds, then those of the second are: each
 * three times, of which the quickest counts.  Messages are parsed beforehand: what is timed is
 * startParsing, which runs over the parsed message, with results as booleans; CLOCK says whether
 * by the time that passes (wall) or that the thread computes (cpu).
 *
 * One line a measured message on standard output: name, microseconds, number of matches; before
 * them "built", microseconds, number of profiles.
 */

import edu.berkeley.cs.db.yfilter.filter.EXfilterBasic;
import edu.berkeley.cs.db.yfilter.filter.SystemGlobals;
import edu.berkeley.cs.db.yfilterplus.queryparser.Query;
import edu.berkeley.cs.db.yfilterplus.queryparser.XPQueryParser;
import edu.berkeley.cs.db.yfilterplus.xmltree.XMLTree;
import java.io.File;
import java.io.PrintStream;
import java.io.StringReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;

public class YFilterDriver {
    private static final int REPEATS = 3;

    private final EXfilterBasic filter;
    private final boolean cpuClock;
    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();

    private YFilterDriver(EXfilterBasic filter, boolean cpuClock) {
        this.filter = filter;
        this.cpuClock = cpuClock;
    }

    private long now() {
        return cpuClock ? threads.getCurrentThreadCpuTime() : System.nanoTime();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // YFilter reports on standard output
        SystemGlobals.preparsing = true;
        SystemGlobals.setOutputLevel(SystemGlobals.OUTPUT_BOOLEAN);

        int number = Integer.parseInt(arguments[1]);
        long start = System.nanoTime();
        EXfilterBasic filter = new EXfilterBasic();
        XPQueryParser parser = new XPQueryParser(arguments[0]);
        int registered = 0;
        for (Query query; registered < number && (query = parser.readNextQuery()) != null; ) {
            filter.addQuery(query);
            registered++;
        }
        filter.preAllocate();
        answers.printf("built\t%.1f\t%d%n", (System.nanoTime() - start) / 1e3, registered);

        YFilterDriver driver = new YFilterDriver(filter, arguments[5].equals("cpu"));
        driver.warmUp(read(arguments[2]), Double.parseDouble(arguments[4]));
        for (File file : files(arguments[3])) {
            XMLTree tree = parse(file);
            long best = Long.MAX_VALUE;
            int matches = 0;
            for (int turn = 0; turn < REPEATS; turn++) {
                filter.setXMLTree(tree);
                long begin = driver.now();
                filter.startParsing();
                best = Math.min(best, driver.now() - begin);
                matches = filter.getNoMatchedQueries();
                filter.clear();
            }
            answers.printf("%s\t%.1f\t%d%n", file.getName(), best / 1e3, matches);
        }
        answers.flush();
    }

    private void warmUp(XMLTree[] trees, double seconds) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        do {
            for (XMLTree tree : trees) {
                filter.setXMLTree(tree);
                filter.startParsing();
                filter.clear();
            }
        } while (System.nanoTime() < end);
    }

    private static XMLTree[] read(String directory) throws Exception {
        File[] files = files(directory);
        XMLTree[] trees = new XMLTree[files.length];
        for (int i = 0; i < files.length; i++) {
            trees[i] = parse(files[i]);
        }
        return trees;
    }

    private static File[] files(String directory) {
        File[] files = new File(directory).listFiles();
        Arrays.sort(files);
        return files;
    }

    private static XMLTree parse(File file) throws Exception {
        return new XMLTree(
                new StringReader(
                        new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8)));
    }
}
